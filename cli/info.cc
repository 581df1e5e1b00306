#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "commands.h"
#include "model/model.h"

namespace epona::cli {
namespace {

void count_operators(const Graph& graph, std::map<std::string, int>& counts) {
  for (const Node& node : graph.nodes) {
    ++counts[node.domain.empty() ? node.op : node.domain + ":" + node.op];
    for_each_subgraph(node, [&](const Graph& body) { count_operators(body, counts); });
  }
}

void describe_values(JsonWriter& json, const Graph& graph, const std::vector<ValueId>& ids) {
  json.begin_array();
  for (ValueId id : ids) {
    const Type& type = graph.values[id].type;
    json.begin_object().field("name", graph.values[id].name);
    json.field("type", type.is_tensor() ? type_name(type.elem) : type.to_string());
    if (type.is_tensor() && type.shape) {
      json.key("shape").begin_array();
      for (const Dim& dim : *type.shape) {
        if (dim.known())
          json.value(dim.value);
        else
          json.value(dim.symbol.empty() ? "?" : dim.symbol);
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
}

std::string bytes_text(size_t bytes) {
  if (bytes < 100'000) return std::to_string(bytes) + " bytes";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(bytes) / 1e6);
  return text;
}

}  // namespace

int command_info(const std::vector<std::string>& words) {
  Args args = parse(words, {{"json", false}});
  std::string path = model_argument(args);
  Model model = load_model(std::filesystem::path(path));
  const Graph& graph = *model.graph;
  std::map<std::string, int> operators;
  count_operators(graph, operators);
  size_t weight_bytes = 0;
  std::vector<ValueId> inputs;
  for (const Value& value : graph.values)
    if (value.constant) weight_bytes += value.constant.bytes();
  for (ValueId id : graph.inputs)
    if (!graph.values[id].constant) inputs.push_back(id);
  if (args.has("json")) {
    JsonWriter json;
    json.begin_object()
        .field("model", path)
        .field("ir_version", model.ir_version)
        .field("producer", model.producer_name);
    json.field("graph", graph.name).field("weight_bytes", weight_bytes);
    json.key("opsets").begin_object();
    for (auto& [domain, version] : graph.opsets) json.field(domain.empty() ? "ai.onnx" : domain, version);
    json.end_object().key("metadata").begin_object();
    for (auto& [key, value] : model.metadata) json.field(key, value);
    json.end_object().key("inputs");
    describe_values(json, graph, inputs);
    json.key("outputs");
    describe_values(json, graph, graph.outputs);
    json.key("operators").begin_object();
    for (auto& [name, count] : operators) json.field(name, count);
    json.end_object().end_object();
    std::printf("%s\n", json.text().c_str());
    return 0;
  }
  std::printf("%s\n", path.c_str());
  if (!model.producer_name.empty())
    std::printf("  producer  %s %s\n", model.producer_name.c_str(), model.producer_version.c_str());
  std::printf("  format    IR %lld", static_cast<long long>(model.ir_version));
  for (auto& [domain, version] : graph.opsets)
    std::printf(", %s %d", domain.empty() ? "ai.onnx" : domain.c_str(), version);
  std::printf("\n  weights   %s\n  inputs\n", bytes_text(weight_bytes).c_str());
  for (ValueId id : inputs)
    std::printf("    %s  %s\n", graph.values[id].name.c_str(), typed(graph.values[id].type).c_str());
  std::printf("  outputs\n");
  for (ValueId id : graph.outputs)
    std::printf("    %s  %s\n", graph.values[id].name.c_str(), typed(graph.values[id].type).c_str());
  std::vector<std::pair<int, std::string>> by_count;
  int nodes = 0;
  for (auto& [name, count] : operators) {
    by_count.emplace_back(-count, name);
    nodes += count;
  }
  std::sort(by_count.begin(), by_count.end());
  std::printf("  operators (%d node%s)\n    ", nodes, nodes == 1 ? "" : "s");
  for (size_t i = 0; i < by_count.size(); ++i)
    std::printf("%s%s %d", i ? ", " : "", by_count[i].second.c_str(), -by_count[i].first);
  std::printf("\n");
  for (auto& [key, value] : model.metadata)
    std::printf("  %s: %.60s%s\n", key.c_str(), value.c_str(), value.size() > 60 ? "..." : "");
  return 0;
}

}  // namespace epona::cli
