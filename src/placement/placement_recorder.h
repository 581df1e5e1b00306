#pragma once
#include <string>

#include "graph/graph.h"
#include "passes/trace.h"
#include "placement/placement.h"

namespace epona {

/// Keeps the rows of a placement, one for each node of the model as it was loaded, while its graph is rewritten.
class PlacementRecorder {
 public:
  PlacementRecorder(const Graph& graph, Placement& placement);

  NodeTrace& trace() { return trace_; }
  void declined(const Graph& graph, NodeId id, const NodePlacement::Declined& declined);
  /// A node of the final graph got its kernel from `provider`.
  void placed(const Graph& graph, NodeId id, const std::string& provider);
  /// After the last rewrite: fused and vanished nodes say so.
  void finish();

 private:
  NodeTrace trace_;
  Placement& placement_;
};

}  // namespace epona
