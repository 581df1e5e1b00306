#pragma once
#include <vector>

#include "graph/graph.h"

namespace epona {

// Nodes that a provider other than the CPU runs are marked before the passes that only the CPU understands: a mark in
// front of the domain's name keeps every pattern from matching them, whichever pass looks.

/// Marks a node with the numbers of the providers that take it, most wanted first.
void mark_node(Node& node, const std::vector<int>& providers);
bool is_marked(const Node& node);
/// Restores the domain and says what the mark was; empty when there was none.
std::vector<int> unmark_node(Node& node);

}  // namespace epona
