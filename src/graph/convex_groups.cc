#include "graph/convex_groups.h"

#include <algorithm>
#include <numeric>

namespace epona {
namespace {

/// Levels: along every edge they do not fall, and from an unsupported node to anything supported they rise. Supported
/// nodes of one level are then convex together, since a path that leaves them through an unsupported node rises. First
/// every node gets its lowest level; whole components then move up to where their readers are, and merge with them.
class Leveller {
 public:
  Leveller(const Graph& graph, const std::vector<char>& supported)
      : graph_(graph), supported_(supported), level_(graph.nodes.size(), 0), component_(graph.nodes.size(), -1) {
    connect();
    lower();
  }

  std::vector<std::vector<NodeId>> groups() {
    // Every round merges at least two components; the bound is for graphs with thousands of tiny ones.
    for (int round = 0; round < 32; ++round) {
      find_components();
      if (!raise()) break;
    }
    find_components();
    std::stable_sort(members_.begin(), members_.end(),
                     [&](const auto& a, const auto& b) { return level_[a[0]] < level_[b[0]]; });
    return std::move(members_);
  }

 private:
  void connect() {
    successors_.resize(graph_.nodes.size());
    predecessors_.resize(graph_.nodes.size());
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.removed) continue;
      order_.push_back(id);
      auto reads = [&](ValueId value) {
        if (value == kNone || graph_.values[value].producer == kNone) return;
        NodeId from = graph_.values[value].producer;
        if (!predecessors_[id].empty() && predecessors_[id].back() == from) return;
        predecessors_[id].push_back(from);
        successors_[from].push_back(id);
      };
      for (ValueId value : node.inputs) reads(value);
      for (ValueId value : node.captures) reads(value);
    }
  }

  void lower() {
    for (NodeId id : order_)
      for (NodeId from : predecessors_[id])
        level_[id] = std::max(level_[id], level_[from] + (supported_[id] && !supported_[from] ? 1 : 0));
  }

  void find_components() {
    std::fill(component_.begin(), component_.end(), -1);
    members_.clear();
    std::vector<NodeId> open;
    for (NodeId start : order_) {
      if (!supported_[start] || component_[start] >= 0) continue;
      int number = static_cast<int>(members_.size());
      members_.emplace_back();
      open.push_back(start);
      component_[start] = number;
      while (!open.empty()) {
        NodeId id = open.back();
        open.pop_back();
        members_[number].push_back(id);
        auto visit = [&](NodeId next) {
          if (!supported_[next] || component_[next] >= 0 || level_[next] != level_[id]) return;
          component_[next] = number;
          open.push_back(next);
        };
        for (NodeId next : predecessors_[id]) visit(next);
        for (NodeId next : successors_[id]) visit(next);
      }
      std::sort(members_[number].begin(), members_[number].end());
    }
  }

  /// The highest level that a node's readers allow it. Unsupported nodes may rise as well.
  int ceiling(NodeId id) const {
    int top = INT_MAX;
    for (NodeId next : successors_[id])
      top = std::min(top, supported_[next] ? level_[next] - (supported_[id] ? 0 : 1) : ceilings_[next]);
    return top;
  }

  bool raise() {
    ceilings_.assign(graph_.nodes.size(), INT_MAX);
    for (auto it = order_.rbegin(); it != order_.rend(); ++it)
      if (!supported_[*it]) ceilings_[*it] = ceiling(*it);
    bool moved = false;
    for (size_t number = members_.size(); number-- > 0;) {
      const std::vector<NodeId>& members = members_[number];
      int top = INT_MAX;
      bool joins = false;
      for (NodeId id : members)
        for (NodeId next : successors_[id]) {
          if (component_[next] == static_cast<int>(number)) continue;
          top = std::min(top, supported_[next] ? level_[next] : ceilings_[next]);
        }
      if (top == INT_MAX || top <= level_[members[0]]) continue;
      for (NodeId id : members)
        for (NodeId next : successors_[id])
          joins |= supported_[next] && component_[next] != static_cast<int>(number) && level_[next] == top;
      if (!joins) continue;
      for (NodeId id : members) level_[id] = top;
      raise_readers(members);
      moved = true;
      break;  // components and ceilings have changed
    }
    return moved;
  }

  /// Unsupported nodes after the ones that moved up follow; their ceilings allow it.
  void raise_readers(const std::vector<NodeId>& moved) {
    std::vector<NodeId> open(moved.begin(), moved.end());
    while (!open.empty()) {
      NodeId id = open.back();
      open.pop_back();
      for (NodeId next : successors_[id]) {
        if (supported_[next] || level_[next] >= level_[id]) continue;
        level_[next] = level_[id];
        open.push_back(next);
      }
    }
  }

  const Graph& graph_;
  const std::vector<char>& supported_;
  std::vector<int> level_, component_, ceilings_;
  std::vector<NodeId> order_;
  std::vector<std::vector<NodeId>> successors_, predecessors_, members_;
};

}  // namespace

std::vector<std::vector<NodeId>> convex_groups(const Graph& graph, const std::vector<char>& supported) {
  return Leveller(graph, supported).groups();
}

Graph extract_group(const Graph& graph, const std::vector<NodeId>& group, std::vector<ValueId>& inputs,
                    std::vector<ValueId>& outputs) {
  std::vector<char> inside(graph.nodes.size(), 0), read_outside(graph.values.size(), 0);
  for (NodeId id : group) inside[id] = 1;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    if (inside[id] || graph.nodes[id].removed) continue;
    for (ValueId value : graph.nodes[id].inputs)
      if (value != kNone) read_outside[value] = 1;
    for (ValueId value : graph.nodes[id].captures) read_outside[value] = 1;
  }
  for (ValueId value : graph.outputs) read_outside[value] = 1;

  Graph result;
  result.name = graph.name;
  result.opsets = graph.opsets;
  std::vector<ValueId> to(graph.values.size(), kNone);
  inputs.clear();
  outputs.clear();
  auto map = [&](ValueId value) {
    if (value == kNone) return kNone;
    if (to[value] != kNone) return to[value];
    const Value& from = graph.values[value];
    to[value] = result.add_value(from.name, from.type);
    if (graph.constant(value)) {
      result.values[to[value]].constant = from.constant;
    } else if (from.producer == kNone || !inside[from.producer]) {
      result.values[to[value]].is_input = true;
      result.inputs.push_back(to[value]);
      inputs.push_back(value);
    }
    return to[value];
  };
  for (NodeId id : group) {
    Node node = graph.nodes[id];
    for (ValueId& value : node.inputs) value = map(value);
    for (ValueId& value : node.captures) value = map(value);
    for (ValueId& value : node.outputs) {
      ValueId outer = value;
      value = map(value);
      if (outer == kNone || !read_outside[outer]) continue;
      result.outputs.push_back(value);
      outputs.push_back(outer);
    }
    result.add_node(std::move(node));
  }
  return result;
}

}  // namespace epona
