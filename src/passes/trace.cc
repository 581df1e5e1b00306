#include "passes/trace.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace epona {

NodeTrace::NodeTrace(const Graph& graph) { add(graph); }

void NodeTrace::add(const Graph& graph) {
  State& state = states_[&graph];
  state.entries.resize(graph.nodes.size());
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed) continue;
    TracedNode traced;
    traced.name = node.name;
    traced.op = node.op;
    traced.domain = node.domain;
    traced.graph = graph.name;
    for (ValueId value : node.inputs)
      if (value != kNone) traced.inputs.push_back(graph.values[value].name);
    for (ValueId value : node.captures) traced.inputs.push_back(graph.values[value].name);
    for (ValueId value : node.outputs)
      if (value != kNone) traced.outputs.push_back(graph.values[value].name);
    state.entries[id].origins.push_back(static_cast<int>(nodes.size()));
    nodes.push_back(std::move(traced));
    for_each_subgraph(node, [&](const Graph& body) { add(body); });
  }
}

void NodeTrace::before(const Graph& graph, bool rebuilds) {
  State& state = states_[&graph];
  size_t count = graph.nodes.size();
  state.entries.resize(count);
  state.inputs.resize(count);
  state.outputs.resize(count);
  for (size_t id = 0; id < count; ++id) {
    state.inputs[id] = graph.nodes[id].inputs;
    state.outputs[id] = graph.nodes[id].outputs;
  }
  state.names.clear();
  for (size_t id = 0; rebuilds && id < count; ++id) state.names.push_back(graph.nodes[id].name);
}

/// The node that computes what `gone` did: the producer of its output now, or whoever absorbed the reader of its output.
NodeId NodeTrace::find_absorber(const Graph& graph, const State& state, NodeId gone, int depth) const {
  for (ValueId output : state.outputs[gone])
    if (output != kNone && graph.values[output].producer != kNone) return graph.values[output].producer;
  if (depth > 64) return kNone;
  for (ValueId output : state.outputs[gone]) {
    if (output == kNone) continue;
    for (NodeId reader : state.readers[output]) {
      if (graph.nodes[reader].removed) {
        if (NodeId absorber = find_absorber(graph, state, reader, depth + 1); absorber != kNone) return absorber;
      } else {
        // A reader that stayed and reads something else now has taken the work over.
        const auto& now = graph.nodes[reader].inputs;
        if (std::find(now.begin(), now.end(), output) == now.end()) return reader;
      }
    }
  }
  return kNone;
}

void NodeTrace::after(const Graph& graph, const std::string& by) {
  State& state = states_[&graph];
  if (!state.names.empty()) return after_rebuild(graph, by);
  size_t old = state.entries.size();
  state.entries.resize(graph.nodes.size());
  for (size_t id = old; id < graph.nodes.size(); ++id) state.entries[id].inserted = by;
  bool removes = by.starts_with("eliminate");
  state.readers.assign(graph.values.size(), {});
  for (size_t id = 0; id < old; ++id)
    for (ValueId input : state.inputs[id])
      if (input != kNone) state.readers[input].push_back(static_cast<NodeId>(id));
  for (size_t id = 0; id < old; ++id) {
    Entry& entry = state.entries[id];
    if (!graph.nodes[id].removed || entry.origins.empty()) continue;
    bool constant = false;
    for (ValueId output : state.outputs[id]) constant |= output != kNone && graph.values[output].constant;
    NodeId absorber = kNone;
    if (!constant && !removes) {
      absorber = find_absorber(graph, state, static_cast<NodeId>(id), 0);
      // Bypassed: its input's producer does the work (a scale folded into a convolution).
      for (ValueId input : state.inputs[id])
        if (absorber == kNone && input != kNone && graph.values[input].producer != kNone)
          absorber = graph.values[input].producer;
    }
    if (constant)
      for (int origin : entry.origins) nodes[origin].vanished = "folded into a constant by " + by;
    else
      absorb(state, std::exchange(entry.origins, {}), absorber, by);
    entry.origins.clear();
  }
}

void NodeTrace::absorb(State& state, const std::vector<int>& origins, NodeId absorber, const std::string& by) {
  for (int origin : origins) {
    if (absorber == kNone) {
      nodes[origin].vanished = "removed by " + by;
      continue;
    }
    nodes[origin].by.push_back(by);
    state.entries[absorber].origins.push_back(origin);
  }
}

/// The list of nodes is another: a node is known by its first output or, when that is another value now, by its name.
/// What is in neither went into the node that it followed.
void NodeTrace::after_rebuild(const Graph& graph, const std::string& by) {
  State& state = states_[&graph];
  const auto old = static_cast<NodeId>(state.entries.size());
  std::vector<NodeId> made_by(graph.values.size(), kNone), now(static_cast<size_t>(old), kNone);
  std::map<std::string_view, NodeId> by_name;
  for (NodeId id = 0; id < old; ++id) {
    for (ValueId output : state.outputs[id])
      if (output != kNone) made_by[output] = id;
    if (!state.names[id].empty()) by_name.emplace(state.names[id], id);
  }
  std::vector<Entry> entries(graph.nodes.size());
  // Changes of layout that the pass put at the edges: "x_to_nhwc", "x_from_nchwc".
  auto is_reorder = [&](const Node& node) {
    return (node.op == "Transpose" || node.op.starts_with("Reorder")) &&
           (node.name.ends_with("_nhwc") || node.name.ends_with("_nchwc")) && !by_name.contains(node.name);
  };
  auto carry_over = [&](NodeId id, NodeId was) {
    now[was] = id;
    entries[id] = std::move(state.entries[was]);
  };
  const auto count = static_cast<NodeId>(graph.nodes.size());
  for (NodeId id = 0; id < count; ++id) {
    auto named = by_name.find(graph.nodes[id].name);
    if (!graph.nodes[id].removed && named != by_name.end() && now[named->second] == kNone)
      carry_over(id, named->second);
  }
  for (NodeId id = 0; id < count; ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed || !entries[id].origins.empty()) continue;
    NodeId was =
        node.outputs.empty() || node.outputs[0] == kNone || is_reorder(node) ? kNone : made_by[node.outputs[0]];
    if (was != kNone && now[was] == kNone)
      carry_over(id, was);
    else
      entries[id].inserted = by;
  }
  std::vector<Entry> gone = std::move(state.entries);
  state.entries = std::move(entries);
  std::vector<NodeId> vanished;
  for (NodeId id = 0; id < old; ++id) {
    if (now[id] != kNone) continue;
    vanished.push_back(id);
    NodeId absorber = kNone;
    for (ValueId output : state.outputs[id]) {
      NodeId producer = output == kNone ? kNone : graph.values[output].producer;
      while (producer != kNone && is_reorder(graph.nodes[producer]))
        producer = graph.values[graph.nodes[producer].inputs[0]].producer;
      if (producer != kNone) absorber = producer;
    }
    for (ValueId input : state.inputs[id])
      if (absorber == kNone && input != kNone && made_by[input] != kNone) absorber = now[made_by[input]];
    now[id] = absorber;
  }
  // What follows nothing (the conversion of a weight) went into its reader.
  for (NodeId reader = old - 1; reader >= 0; --reader)
    for (ValueId input : state.inputs[reader])
      if (input != kNone && made_by[input] != kNone && now[made_by[input]] == kNone) now[made_by[input]] = now[reader];
  for (NodeId id : vanished) absorb(state, gone[id].origins, now[id], by);
}

void NodeTrace::take_origins(const Graph& graph, NodeId id, std::vector<int>& origins) {
  auto& entries = states_[&graph].entries;
  if (id >= static_cast<NodeId>(entries.size())) return;
  origins.insert(origins.end(), entries[id].origins.begin(), entries[id].origins.end());
  entries[id].origins.clear();
  for_each_subgraph(graph.nodes[id], [&](const Graph& body) {
    for (NodeId inner = 0; inner < static_cast<NodeId>(body.nodes.size()); ++inner) take_origins(body, inner, origins);
  });
}

void NodeTrace::group(const Graph& graph, const std::vector<NodeId>& members, NodeId node) {
  std::vector<int> origins;
  for (NodeId id : members) take_origins(graph, id, origins);
  auto& entries = states_[&graph].entries;
  entries.resize(static_cast<size_t>(node) + 1);
  entries[node].origins = std::move(origins);
}

void NodeTrace::tidy(Graph& graph) {
  std::vector<Entry>& entries = states_[&graph].entries;
  std::vector<Entry> kept;
  for (size_t id = 0; id < graph.nodes.size(); ++id)
    if (!graph.nodes[id].removed) kept.push_back(std::move(entries[id]));
  graph.compact();
  // Sorting leaves the values' numbers: a node is known by its first output.
  auto key = [](const Node& node) {
    for (ValueId output : node.outputs)
      if (output != kNone) return output;
    return kNone;
  };
  std::vector<Entry> by_value(graph.values.size());
  for (size_t id = 0; id < kept.size(); ++id)
    if (ValueId value = key(graph.nodes[id]); value != kNone) by_value[value] = std::move(kept[id]);
  graph.sort();
  entries.assign(graph.nodes.size(), {});
  for (size_t id = 0; id < entries.size(); ++id)
    if (ValueId value = key(graph.nodes[id]); value != kNone) entries[id] = std::move(by_value[value]);
}

const std::vector<int>& NodeTrace::origins(const Graph& graph, NodeId id) const {
  static const std::vector<int> none;
  auto it = states_.find(&graph);
  return it == states_.end() || id >= static_cast<NodeId>(it->second.entries.size()) ? none
                                                                                     : it->second.entries[id].origins;
}

std::string NodeTrace::inserted_by(const Graph& graph, NodeId id) const {
  auto it = states_.find(&graph);
  return it == states_.end() || id >= static_cast<NodeId>(it->second.entries.size()) ? ""
                                                                                     : it->second.entries[id].inserted;
}

}  // namespace epona
