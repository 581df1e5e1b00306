#pragma once
#include <vector>

#include "graph/graph.h"

namespace epona {

/// The largest connected groups of the supported nodes (a flag each) such that every group can be replaced by one node
/// without making a cycle: no path leaves a group and comes back. In the order in which they can run.
std::vector<std::vector<NodeId>> convex_groups(const Graph& graph, const std::vector<char>& supported);

/// A group as a graph of its own. Inputs: values that it reads and does not make (constants come along); outputs: values
/// that others read. `inputs` and `outputs` receive their ids in `graph`, in the order of the result's.
Graph extract_group(const Graph& graph, const std::vector<NodeId>& group, std::vector<ValueId>& inputs,
                    std::vector<ValueId>& outputs);

}  // namespace epona
