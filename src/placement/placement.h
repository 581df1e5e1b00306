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

/// The record of who runs what; part of a session.
struct Placement {
  std::vector<NodePlacement> nodes;
  /// Providers that were asked for and are not active, with the cause and the fix.
  std::vector<std::pair<std::string, std::string>> inactive;

  /// Number of nodes per provider.
  std::map<std::string, int> counts() const;
};

/// Asks the providers in order what they take of a graph (and its subgraphs). Node -> provider for graph.nodes; every
/// answer is recorded in `placement`.
std::vector<Provider*> place(const Graph& graph, const std::vector<Provider*>& providers, Placement& placement);

}  // namespace epona
