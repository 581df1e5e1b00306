#include "passes/rewrite.h"

#include <algorithm>

#include "ops/dispatch.h"

namespace epona {

bool bypass(Graph& graph, NodeId id, ValueId input) {
  ValueId output = kNone;
  for (ValueId candidate : graph.nodes[id].outputs)
    if (candidate != kNone) output = candidate;
  if (graph.is_output(output)) {
    Value& from = graph.values[input];
    if (from.producer == kNone || graph.is_output(input) || from.is_input || from.is_capture) return false;
    NodeId producer = from.producer;
    int slot = from.producer_slot;
    graph.remove_node(id);
    graph.replace_uses(input, output);
    graph.nodes[producer].outputs[slot] = output;
    graph.values[output].producer = producer;
    graph.values[output].producer_slot = slot;
    if (graph.values[output].type.kind == Type::Kind::unknown) graph.values[output].type = from.type;
    from.producer = kNone;
    return true;
  }
  graph.remove_node(id);
  graph.replace_uses(output, input);
  return true;
}

int remove_dead_nodes(Graph& graph) {
  std::vector<int> readers(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    if (node.removed) continue;
    for (const auto* list : {&node.inputs, &node.captures})
      for (ValueId id : *list)
        if (id != kNone) ++readers[id];
  }
  for (ValueId id : graph.outputs) ++readers[id];
  int removed = 0;
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()) - 1; id >= 0; --id) {
    Node& node = graph.nodes[id];
    if (node.removed) continue;
    bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                            [&](ValueId output) { return output != kNone && readers[output] > 0; });
    if (used) continue;
    for (const auto* list : {&node.inputs, &node.captures})
      for (ValueId input : *list)
        if (input != kNone) --readers[input];
    graph.remove_node(id);
    ++removed;
  }
  return removed;
}

std::optional<double> constant_scalar(const Graph& graph, ValueId id) {
  const Tensor* tensor = graph.constant(id);
  if (!tensor || !tensor->data || tensor->size() != 1) return std::nullopt;
  double value = 0;
  bool known =
      dispatch(tensor->type, NumericTypes{}, [&]<class T>() { value = static_cast<double>(*tensor->as<T>()); });
  return known ? std::optional<double>(value) : std::nullopt;
}

const Node* producer_of(const Graph& graph, ValueId id, std::string_view op, std::string_view domain) {
  if (id == kNone || graph.values[id].producer == kNone) return nullptr;
  const Node& node = graph.nodes[graph.values[id].producer];
  return !node.removed && node.is(op, domain) ? &node : nullptr;
}

bool read_once(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers, ValueId id) {
  if (consumers[id].size() != 1 || graph.is_output(id)) return false;
  const Node& reader = graph.nodes[consumers[id][0]];
  return std::find(reader.captures.begin(), reader.captures.end(), id) == reader.captures.end();
}

}  // namespace epona
