#include "placement/placement_recorder.h"

#include "placement/flops.h"

namespace epona {
namespace {

struct Estimate {
  double flops;
  std::set<std::string> assumed;
};

void number_flops(const Graph& graph, std::vector<Estimate>& estimates) {
  // In the order in which NodeTrace numbers nodes.
  for (const Node& node : graph.nodes) {
    if (node.removed) continue;
    Estimate& estimate = estimates.emplace_back();
    estimate.flops = estimate_flops(graph, node, estimate.assumed);
    for_each_subgraph(node, [&](const Graph& body) { number_flops(body, estimates); });
  }
}

}  // namespace

PlacementRecorder::PlacementRecorder(const Graph& graph, Placement& placement) : trace_(graph), placement_(placement) {
  std::vector<Estimate> estimates;
  number_flops(graph, estimates);
  std::set<std::string> fixable;  // others have names that only inference or an exporter knows
  for (ValueId id : graph.inputs)
    if (auto& shape = graph.values[id].type.shape)
      for (const Dim& dim : *shape) fixable.insert(dim.symbol);
  placement_.nodes.resize(trace_.nodes.size());
  for (size_t i = 0; i < trace_.nodes.size(); ++i) {
    TracedNode& from = trace_.nodes[i];
    NodePlacement& row = placement_.nodes[i];
    row.name = from.name;
    row.op = from.op;
    row.domain = from.domain;
    row.graph = from.graph;
    row.inputs = std::move(from.inputs);
    row.outputs = std::move(from.outputs);
    row.flops = estimates[i].flops;
    row.flops_assumed = !estimates[i].assumed.empty();
    for (const std::string& name : estimates[i].assumed)
      placement_.assumed_dims.insert(fixable.contains(name) ? name : "?");
  }
}

void PlacementRecorder::declined(const Graph& graph, NodeId id, const NodePlacement::Declined& declined) {
  for (int origin : trace_.origins(graph, id)) placement_.nodes[origin].declined.push_back(declined);
}

void PlacementRecorder::placed(const Graph& graph, NodeId id, const std::string& provider) {
  const Node& node = graph.nodes[id];
  const std::vector<int>& origins = trace_.origins(graph, id);
  if (origins.empty())
    placement_.inserted.push_back({node.op, node.domain, graph.name, provider, trace_.inserted_by(graph, id)});
  for (int origin : origins) {
    NodePlacement& row = placement_.nodes[origin];
    row.provider = provider;
    if (row.op != node.op || row.domain != node.domain)
      row.runs_as = node.domain.empty() ? node.op : node.domain + ":" + node.op;
  }
}

void PlacementRecorder::finish() {
  for (size_t i = 0; i < trace_.nodes.size(); ++i) {
    placement_.nodes[i].fused_by = trace_.nodes[i].by;
    placement_.nodes[i].vanished = trace_.nodes[i].vanished;
  }
}

}  // namespace epona
