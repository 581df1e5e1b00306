#include "placement/placement.h"

namespace epona {

std::map<std::string, int> Placement::counts() const {
  std::map<std::string, int> counts;
  for (const NodePlacement& node : nodes) ++counts[node.provider];
  return counts;
}

std::vector<Provider*> place(const Graph& graph, const std::vector<Provider*>& providers, Placement& placement) {
  std::vector<Provider*> chosen(graph.nodes.size(), nullptr);
  std::vector<NodePlacement> records(graph.nodes.size());
  for (Provider* provider : providers) {
    Claim claim = provider->claim(graph);
    for (const auto& group : claim.groups) {
      bool all_free = true;
      for (NodeId id : group) all_free &= chosen[id] == nullptr;
      if (!all_free) continue;
      for (NodeId id : group) chosen[id] = provider;
    }
    for (auto& [id, refusal] : claim.refused)
      if (!chosen[id]) records[id].declined.push_back({provider->name(), reason_name(refusal.reason), refusal.text});
  }
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed) continue;
    NodePlacement& record = records[id];
    record.name = node.name;
    record.op = node.op;
    record.domain = node.domain;
    record.graph = graph.name;
    record.provider = chosen[id] ? chosen[id]->name() : "";
    placement.nodes.push_back(std::move(record));
  }
  return chosen;
}

}  // namespace epona
