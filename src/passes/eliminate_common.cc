#include <map>
#include <sstream>

#include "ops/registry.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

/// Text that two nodes share exactly when they compute the same thing; empty when a node must not be merged.
std::string fingerprint(const Graph& graph, const Node& node) {
  const OpDef* def = Registry::instance().find(node.domain, node.op, node.opset);
  if (!def || def->random || !node.captures.empty()) return {};
  std::ostringstream key;
  key.precision(9);
  key << node.domain << '|' << node.op << '|' << node.outputs.size();
  for (ValueId output : node.outputs) key << (output == kNone ? '-' : '+');
  for (ValueId input : node.inputs) key << '|' << input;
  for (auto& [name, attribute] : node.attributes) {
    key << '|' << name << '=';
    bool plain = std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, float>) {
            key << value;
          } else if constexpr (std::is_same_v<T, std::string>) {
            key << value.size() << ':' << value;
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<float>>) {
            for (auto item : value) key << item << ',';
          } else {
            return false;
          }
          return true;
        },
        attribute);
    if (!plain) return {};
  }
  (void)graph;
  return key.str();
}

}  // namespace

int eliminate_common_subexpressions(Graph& graph, const PassContext&) {
  std::map<std::string, NodeId> seen;
  int removed = 0;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed) continue;
    bool visible = false;
    for (ValueId output : node.outputs) visible |= output != kNone && graph.is_output(output);
    if (visible) continue;
    std::string key = fingerprint(graph, node);
    if (key.empty()) continue;
    auto [first, fresh] = seen.emplace(std::move(key), id);
    if (fresh) continue;
    std::vector<ValueId> outputs = node.outputs, kept = graph.nodes[first->second].outputs;
    graph.remove_node(id);
    for (size_t o = 0; o < outputs.size(); ++o)
      if (outputs[o] != kNone) graph.replace_uses(outputs[o], kept[o]);
    ++removed;
  }
  return removed;
}

int eliminate_dead_nodes(Graph& graph, const PassContext&) { return remove_dead_nodes(graph); }

}  // namespace epona
