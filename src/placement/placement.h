#pragma once
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "providers/provider.h"

namespace epona {

/// Where one node runs, and why not on the providers that were asked first.
struct NodePlacement {
  std::string name, op, domain;
  std::string graph;     ///< name of the (sub)graph
  std::string provider;  ///< empty when nobody took it
  struct Declined {
    std::string provider, reason, text;
  };
  std::vector<Declined> declined;
};

/// A provider that was asked for and is not active.
struct InactiveProvider {
  std::string provider;
  std::string stage;  ///< "probe", "start", "build", "run": how far it came
  std::string cause, fix;
  std::string sentence() const;
};

/// The record of who runs what; part of a session.
struct Placement {
  std::vector<NodePlacement> nodes;
  std::vector<InactiveProvider> inactive;

  /// Number of nodes per provider.
  std::map<std::string, int> counts() const;
};

/// For each node of one graph: the providers that would take it, most wanted first.
using Candidates = std::vector<std::vector<Provider*>>;

/// Asks the providers in order what they take of a graph (not of its subgraphs). The first candidate of a node is the
/// one that should run it; the rest are for when it fails to build. Every answer is recorded in `placement`, whose rows
/// from `placement.nodes.size()` on are those of graph.nodes (removed ones left out).
Candidates place(const Graph& graph, const std::vector<Provider*>& providers, Placement& placement);

}  // namespace epona
