#pragma once
#include "graph/graph.h"

namespace epona {

/// About how many floating-point operations a node takes, from the declared or inferred dims; unknown dims count as 1, so
/// shares of a model with symbolic dims are those of its smallest run. Moving data counts as nothing.
double estimate_flops(const Graph& graph, const Node& node);

}  // namespace epona
