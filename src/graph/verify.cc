#include "graph/graph.h"

namespace epona {
namespace {

[[noreturn]] void broken(const Graph& graph, const std::string& what) {
  fail(Code::invalid_graph, "graph '", graph.name, "' is broken: ", what);
}

}  // namespace

void verify(const Graph& graph) {
  const auto values = static_cast<ValueId>(graph.values.size());
  auto in_range = [&](ValueId id) { return id >= 0 && id < values; };
  std::vector<char> defined(graph.values.size(), 0);
  for (ValueId id : graph.inputs) {
    if (!in_range(id)) broken(graph, "an input is out of range");
    defined[id] = 1;
  }
  for (auto& [slot, id] : graph.captured) {
    if (!in_range(id)) broken(graph, "a capture is out of range");
    defined[id] = 1;
  }
  for (ValueId id = 0; id < values; ++id)
    if (graph.values[id].constant) defined[id] = 1;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.removed) continue;
    for (const auto* list : {&node.inputs, &node.captures})
      for (ValueId id : *list) {
        if (id == kNone) continue;
        if (!in_range(id)) broken(graph, cat(describe(node), " reads a value out of range"));
        if (!defined[id])
          broken(graph, cat(describe(node), " reads '", graph.values[id].name, "' before anything writes it"));
      }
    for (size_t slot = 0; slot < node.outputs.size(); ++slot) {
      ValueId id = node.outputs[slot];
      if (id == kNone) continue;
      if (!in_range(id)) broken(graph, cat(describe(node), " writes a value out of range"));
      if (defined[id]) broken(graph, cat("'", graph.values[id].name, "' is written twice"));
      const Value& value = graph.values[id];
      if (value.producer != static_cast<NodeId>(n) || value.producer_slot != static_cast<int>(slot))
        broken(graph, cat("'", value.name, "' does not know its producer ", describe(node)));
      defined[id] = 1;
    }
    for_each_subgraph(node, [&](const Graph& body) {
      for (auto& [slot, id] : body.captured)
        if (slot < 0 || slot >= static_cast<int>(node.captures.size()))
          broken(body, cat("capture ", slot, " of ", describe(node), " is out of range"));
      verify(body);
    });
  }
  for (ValueId id : graph.outputs) {
    if (!in_range(id)) broken(graph, "an output is out of range");
    if (!defined[id]) broken(graph, cat("nothing writes the output '", graph.values[id].name, "'"));
  }
}

}  // namespace epona
