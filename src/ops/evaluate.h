#pragma once
#include <vector>

#include "ops/kernel.h"

namespace epona {

/// Runs one node on constant inputs with its portable kernel (constant folding). Returns false when the node has no
/// kernel, a computed input, a subgraph, or an error: then it is left for the run to report.
/// `max_bytes` limits the outputs: a larger result is not computed.
bool evaluate_constant_node(const Graph& graph, const Node& node, size_t max_bytes, std::vector<Tensor>& outputs);

}  // namespace epona
