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

}  // namespace epona
