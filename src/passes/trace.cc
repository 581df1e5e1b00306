#include "passes/trace.h"

#include <algorithm>

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

void NodeTrace::before(const Graph& graph) {
  State& state = states_[&graph];
  size_t count = graph.nodes.size();
  state.entries.resize(count);
  state.inputs.resize(count);
  state.outputs.resize(count);
  for (size_t id = 0; id < count; ++id) {
    state.inputs[id] = graph.nodes[id].inputs;
    state.outputs[id] = graph.nodes[id].outputs;
  }
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
    for (int origin : entry.origins) {
      if (absorber != kNone) {
        nodes[origin].by.push_back(by);
        state.entries[absorber].origins.push_back(origin);
      } else {
        nodes[origin].vanished = constant ? "folded into a constant by " + by : "removed by " + by;
      }
    }
    entry.origins.clear();
  }
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
