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
  for (ValueId id : ids)
    json.begin_object().field("name", graph.values[id].name).field("type", typed(graph.values[id].type)).end_object();
  json.end_array();
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
  std::printf("%s\n  producer  %s %s, IR %lld", path.c_str(), model.producer_name.c_str(),
              model.producer_version.c_str(), static_cast<long long>(model.ir_version));
  for (auto& [domain, version] : graph.opsets)
    std::printf(", %s %d", domain.empty() ? "ai.onnx" : domain.c_str(), version);
  std::printf("\n  weights   %.1f MB\n  inputs\n", static_cast<double>(weight_bytes) / 1e6);
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
  std::printf("  operators (%d nodes)\n   ", nodes);
  for (auto& [count, name] : by_count) std::printf(" %s %d ", name.c_str(), -count);
  std::printf("\n");
  for (auto& [key, value] : model.metadata)
    std::printf("  %s: %.60s%s\n", key.c_str(), value.c_str(), value.size() > 60 ? "..." : "");
  return 0;
}

}  // namespace epona::cli
