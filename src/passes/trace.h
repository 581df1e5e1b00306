#pragma once
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace epona {

/// A node of the model as it was loaded, and what became of it.
struct TracedNode {
  std::string name, op, domain;
  std::string graph;                         ///< name of the (sub)graph
  std::vector<std::string> inputs, outputs;  ///< names of values
  double flops = 0;
  std::vector<std::string> by;  ///< passes that fused or replaced it, in order
  std::string vanished;         ///< set when nothing computes it any more: how, e.g. "folded into a constant"
};

/// Follows the nodes of a model through rewrites. One per session being built.
class NodeTrace {
 public:
  /// Numbers the nodes of a graph and its subgraphs.
  explicit NodeTrace(const Graph& graph);

  /// Before a rewrite of one graph; `rebuilds`: it will replace the list of nodes.
  void before(const Graph& graph, bool rebuilds);
  /// After it, while removed nodes still have their places: says who took over the work of those that went.
  void after(const Graph& graph, const std::string& by);
  /// Before `members` are removed and `node` (the next to be added) does their work, also that of their subgraphs.
  void group(const Graph& graph, const std::vector<NodeId>& members, NodeId node);
  /// Graph::compact and Graph::sort, followed.
  void tidy(Graph& graph);

  std::vector<TracedNode> nodes;
  /// Numbers (in `nodes`) of the loaded nodes that a node of a graph stands for; empty for nodes that passes inserted.
  const std::vector<int>& origins(const Graph& graph, NodeId id) const;
  /// The pass that inserted a node without origins; "" when unknown.
  std::string inserted_by(const Graph& graph, NodeId id) const;

 private:
  struct Entry {
    std::vector<int> origins;
    std::string inserted;
  };
  struct State {
    std::vector<Entry> entries;                         // by node
    std::vector<std::vector<ValueId>> inputs, outputs;  // before the rewrite
    std::vector<std::string> names;                     // when the list of nodes will be replaced
    std::vector<std::vector<NodeId>> readers;           // of values, before the rewrite; made when it is needed
  };
  void add(const Graph& graph);
  void take_origins(const Graph& graph, NodeId id, std::vector<int>& origins);
  void after_rebuild(const Graph& graph, const std::string& by);
  void absorb(State& state, const std::vector<int>& origins, NodeId absorber, const std::string& by);
  NodeId find_absorber(const Graph& graph, const State& state, NodeId gone, int depth) const;

  std::map<const Graph*, State> states_;
};

}  // namespace epona
