#include "placement/placement.h"

#include <algorithm>

namespace epona {

std::string InactiveProvider::sentence() const {
  std::string text = cat(provider, " was asked for and is not active: ", cause.empty() ? "it failed" : cause, ".");
  if (!fix.empty()) text += cat(" To fix it: ", fix, ".");
  return text;
}

std::map<std::string, int> Placement::counts() const {
  std::map<std::string, int> counts;
  for (const NodePlacement& node : nodes) ++counts[node.provider];
  return counts;
}

Candidates place(const Graph& graph, const std::vector<Provider*>& providers, Placement& placement) {
  Candidates candidates(graph.nodes.size());
  std::vector<NodePlacement> records(graph.nodes.size());
  for (Provider* provider : providers) {
    Claim claim = provider->claim(graph);
    for (const auto& group : claim.groups) {
      // A group is taken as a whole or not at all; for a later provider its nodes are only what it would do in need.
      bool all_free = std::all_of(group.begin(), group.end(), [&](NodeId id) { return candidates[id].empty(); });
      for (NodeId id : group)
        if (all_free || group.size() == 1) candidates[id].push_back(provider);
    }
    for (auto& [id, refusal] : claim.refused)
      if (candidates[id].empty())
        records[id].declined.push_back({provider->name(), reason_name(refusal.reason), refusal.text});
  }
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed) continue;
    NodePlacement& record = records[id];
    record.name = node.name;
    record.op = node.op;
    record.domain = node.domain;
    record.graph = graph.name;
    record.provider = candidates[id].empty() ? "" : candidates[id].front()->name();
    placement.nodes.push_back(std::move(record));
  }
  return candidates;
}

}  // namespace epona
