#pragma once
#include <functional>
#include <vector>

#include "base/cancel.h"
#include "graph/graph.h"
#include "passes/trace.h"
#include "providers/provider.h"

namespace epona {

/// What stands behind one node `epona.Group` (its attribute "index" is a position in a list of these).
struct CompiledGroup {
  Provider* provider = nullptr;
  Compiled compiled;
};

struct PartitionOptions {
  /// A node that the provider was asked for and did not take.
  std::function<void(const Graph&, NodeId, const Refusal&)> declined;
  /// The provider claimed a group and failed to compile it.
  std::function<void(const Graph& group, const std::exception&)> compile_failed;
  /// Called with constants that only compiled groups read any more.
  std::function<void(const Tensor&)> release;
  NodeTrace* trace = nullptr;
  CancelFlag cancel = nullptr;
};

/// Asks a compiling provider for groups of nodes of the graph and of the subgraphs of the nodes that are left, compiles
/// them, and puts one node in the place of each. Marked nodes (marks.h) belong to others.
void partition(Graph& graph, Provider& provider, std::vector<CompiledGroup>& groups, const PartitionOptions& options);

}  // namespace epona
