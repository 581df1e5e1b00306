#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "providers/provider.h"

namespace epona {

/// Where one node of the model as it was loaded runs, and why not on the providers that were asked first.
struct NodePlacement {
  std::string name, op, domain;
  std::string graph;     ///< name of the (sub)graph
  std::string provider;  ///< empty when nobody runs it: it vanished, or nobody took it
  struct Declined {
    std::string provider, reason, text;
  };
  std::vector<Declined> declined;
  std::vector<std::string> inputs, outputs;  ///< names of values
  std::vector<std::string> fused_by;         ///< passes that fused it into another node or replaced it, in order
  std::string runs_as;                       ///< the operator that computes it, when it is another
  std::string vanished;                      ///< how, when nothing computes it any more
  double flops = 0;                          ///< estimate (placement/flops.h)
  bool flops_assumed = false;                ///< unknown dims counted as 1 in it
};

/// A copy between memories that a plan does.
struct PlacedCopy {
  std::string graph, value;
  std::string from, to;  ///< "cpu" or a provider's device: "name:0"
  int64_t bytes = -1;    ///< -1: known only when it runs
  bool once = false;     ///< a constant: when the session is made, not in every run
};

/// A node that a pass put in: a reorder, a cast.
struct InsertedNode {
  std::string op, domain, graph, provider, by;
};

/// What one provider runs. Nodes that vanished count for nobody.
struct ProviderShare {
  std::string provider;
  int nodes = 0;
  double node_share = 0, flops = 0, flop_share = 0;
};

/// A provider that was asked for and is not active.
struct InactiveProvider {
  std::string provider;
  std::string stage;  ///< "probe", "start", "build", "run": where it failed
  std::string cause, fix;
  std::string sentence() const;
};

/// The record of who runs what; part of a session.
struct Placement {
  std::vector<NodePlacement> nodes;
  std::vector<InactiveProvider> inactive;
  std::vector<PlacedCopy> copies;
  std::vector<InsertedNode> inserted;
  std::set<std::string> assumed_dims;  ///< names of dims that count as 1 in the FLOPs; "?" stands for those without

  /// Most FLOPs first. A provider that runs nothing has no row.
  std::vector<ProviderShare> shares() const;
};

/// For each node of one graph: the providers that would take it, most wanted first.
using Candidates = std::vector<std::vector<Provider*>>;

/// What the providers answered for one graph.
struct Asked {
  Candidates candidates;
  std::vector<std::vector<NodePlacement::Declined>> declined;  ///< by node: those asked before the one that took it
};

/// Asks the providers in order what they take of a graph (not of its subgraphs). The first candidate of a node is the
/// one that should run it; the rest are for when it fails to build.
Asked ask_providers(const Graph& graph, const std::vector<Provider*>& providers);

}  // namespace epona
