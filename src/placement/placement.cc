#include "placement/placement.h"

#include <algorithm>
#include <tuple>

#include "placement/ask.h"

namespace epona {

std::string InactiveProvider::sentence() const {
  std::string text = cat(provider, " was asked for and is not active: ", cause.empty() ? "it failed" : cause, ".");
  if (!fix.empty()) text += cat(" To fix it: ", fix, ".");
  return text;
}

std::vector<ProviderShare> Placement::shares() const {
  std::vector<ProviderShare> shares;
  double nodes_total = 0, flops_total = 0;
  for (const NodePlacement& node : nodes) {
    if (!node.vanished.empty()) continue;
    nodes_total += 1;
    flops_total += node.flops;
    if (node.provider.empty()) continue;
    auto share =
        std::find_if(shares.begin(), shares.end(), [&](const ProviderShare& s) { return s.provider == node.provider; });
    if (share == shares.end()) share = shares.insert(shares.end(), {node.provider});
    share->nodes += 1;
    share->flops += node.flops;
  }
  for (ProviderShare& share : shares) {
    share.node_share = nodes_total > 0 ? share.nodes / nodes_total : 0;
    // A model without arithmetic is judged by its nodes.
    share.flop_share = flops_total > 0 ? share.flops / flops_total : share.node_share;
  }
  std::sort(shares.begin(), shares.end(), [](const ProviderShare& a, const ProviderShare& b) {
    return std::tie(a.flop_share, a.nodes) > std::tie(b.flop_share, b.nodes);
  });
  return shares;
}

Claim ask(Provider& provider, const Graph& graph) {
  try {
    return provider.claim(graph);
  } catch (const std::exception& error) {
    auto* own = dynamic_cast<const Error*>(&error);
    if (own && own->code() == Code::invalid_argument)
      throw;  // an option that does not fit the model: the user's to mend
    throw ProviderFailure(provider.name(),
                          cat("it failed when asked what it takes of graph '", graph.name, "': ", error.what()));
  }
}

Asked ask_providers(const Graph& graph, const std::vector<Provider*>& providers) {
  Asked asked;
  asked.candidates.resize(graph.nodes.size());
  asked.declined.resize(graph.nodes.size());
  for (Provider* provider : providers) {
    Claim claim = ask(*provider, graph);
    for (const auto& group : claim.groups) {
      // A group is taken as a whole or not at all; for a later provider its nodes are only what it would do in need.
      bool all_free = std::all_of(group.begin(), group.end(), [&](NodeId id) { return asked.candidates[id].empty(); });
      for (NodeId id : group)
        if (all_free || group.size() == 1) asked.candidates[id].push_back(provider);
    }
    for (auto& [id, refusal] : claim.refused)
      if (asked.candidates[id].empty())
        asked.declined[id].push_back({provider->name(), reason_name(refusal.reason), refusal.text});
  }
  return asked;
}

}  // namespace epona
