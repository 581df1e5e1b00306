#pragma once
#include <optional>
#include <string_view>

#include "graph/graph.h"

namespace epona {

/// Takes node `id` (one wanted output, equal to `input`) out of the graph: its readers read `input` instead. A graph
/// output keeps its name: then the producer of `input` writes it directly. Returns false and changes nothing when that
/// is not possible (the output is a graph output and `input` is a graph input, constant, capture or itself an output).
bool bypass(Graph& graph, NodeId id, ValueId input);

/// Removes nodes whose results nobody reads. Returns how many.
int remove_dead_nodes(Graph& graph);

/// The value of a constant with one element, as double; nothing when it is not one.
std::optional<double> constant_scalar(const Graph& graph, ValueId id);

/// The node that produces a value, if it is operator `op` of `domain`; nullptr otherwise.
const Node* producer_of(const Graph& graph, ValueId id, std::string_view op, std::string_view domain = "");

/// Whether exactly one node reads the value (once or more), no subgraph captures it, and it is not a graph output.
bool read_once(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers, ValueId id);

/// The large constant float32 matrix that `node` transposes, or kNone: MatMul can read it where it lies
/// (fuse_weight_transpose).
ValueId transposed_weight(const Graph& graph, const Node& node);

/// What passes that recognise a pattern of nodes share. Readers are those of the graph when it was made: a pattern may
/// replace and remove nodes of its own, and leaves what others read as it was.
class PatternMatcher {
 public:
  explicit PatternMatcher(Graph& graph) : graph_(graph), readers_(graph.consumers()) {}

 protected:
  /// Calls fuse(id) for every node `op` of ai.onnx that still stands and removes what nobody reads afterwards. Returns
  /// how often it was true.
  template <class Fuse>
  int fuse_each(std::string_view op, Fuse&& fuse) {
    int fused = 0;
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      if (!graph_.nodes[id].removed && graph_.nodes[id].is(op)) fused += fuse(id);
    if (fused > 0) remove_dead_nodes(graph_);
    return fused;
  }

  /// The producer of a value that nothing else reads, if it is operator `op`; nullptr otherwise.
  const Node* inner(ValueId id, std::string_view op) const {
    return read_once(graph_, readers_, id) ? producer_of(graph_, id, op) : nullptr;
  }

  /// The only reader of a value, if it is operator `op`; kNone otherwise.
  NodeId only_reader(ValueId id, std::string_view op) const {
    if (!read_once(graph_, readers_, id)) return kNone;
    const NodeId next = readers_[id][0];
    return !graph_.nodes[next].removed && graph_.nodes[next].is(op) ? next : kNone;
  }

  /// The other operand of a node with two; kNone when both are `value`.
  static ValueId other_input(const Node& node, ValueId value) {
    return node.inputs[0] == node.inputs[1] ? kNone : node.inputs[node.inputs[0] == value ? 1 : 0];
  }

  Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
};

}  // namespace epona
