#pragma once
#include <set>
#include <string>

#include "graph/graph.h"

namespace epona {

/// About how many floating-point operations a node takes, from the declared or inferred dims; unknown dims count as 1, so
/// shares of a model with symbolic dims are those of its smallest run. Moving data counts as nothing. The names of those
/// dims ("?" for one without) are added to `assumed`.
double estimate_flops(const Graph& graph, const Node& node, std::set<std::string>& assumed);

}  // namespace epona
