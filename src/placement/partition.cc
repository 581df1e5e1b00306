#include "placement/partition.h"

#include <map>

#include "graph/convex_groups.h"
#include "placement/ask.h"
#include "placement/marks.h"

namespace epona {
namespace {

class Partitioner {
 public:
  Partitioner(Provider& provider, std::vector<CompiledGroup>& groups, const PartitionOptions& options)
      : provider_(provider), groups_(groups), options_(options) {}

  void cut(Graph& graph) {
    Claim claim = ask(provider_, graph);
    for (auto& [id, refusal] : claim.refused)
      if (!is_marked(graph.nodes[id])) options_.declined(graph, id, refusal);
    constants_.clear();
    bool changed = false;
    for (auto& group : claim.groups)
      for (auto& part : unmarked(graph, group)) changed |= take(graph, part, 0);
    if (changed) tidy(graph);
    for (Node& node : graph.nodes)
      if (!node.is("Group", "epona")) for_each_subgraph(node, [&](Graph& body) { cut(body); });
  }

 private:
  /// What is left of a group without the nodes that other providers have.
  std::vector<std::vector<NodeId>> unmarked(const Graph& graph, const std::vector<NodeId>& group) const {
    std::vector<char> free(graph.nodes.size(), 0);
    bool all = true;
    for (NodeId id : group) {
      free[static_cast<size_t>(id)] = !is_marked(graph.nodes[id]);
      all &= free[static_cast<size_t>(id)] != 0;
    }
    return all ? std::vector<std::vector<NodeId>>{group} : convex_groups(graph, free);
  }

  bool take(Graph& graph, const std::vector<NodeId>& group, int depth) {
    std::vector<ValueId> inputs, outputs;
    stop_if_cancelled(options_.cancel);
    Graph inner = extract_group(graph, group, inputs, outputs);
    CompiledGroup compiled;
    try {
      compiled.compiled = provider_.compile(inner);
    } catch (const std::exception& error) {
      return take_less(graph, group, inner, error, depth);
    }
    compiled.provider = &provider_;
    for (const Value& value : inner.values)
      if (value.constant) constants_.emplace(value.name, value.constant);
    Node node;
    auto index = static_cast<int64_t>(groups_.size());
    node.op = "Group";
    node.domain = "epona";
    node.name = cat(provider_.name(), "_", index);
    node.attributes["index"] = index;
    node.inputs = inputs;
    node.outputs = outputs;
    auto id = static_cast<NodeId>(graph.nodes.size());
    if (options_.trace) options_.trace->group(graph, group, id);
    for (NodeId member : group) graph.remove_node(member);
    graph.add_node(std::move(node));
    groups_.push_back(std::move(compiled));
    return true;
  }

  bool take_less(Graph& graph, const std::vector<NodeId>& group, const Graph& inner, const std::exception& error,
                 int depth) {
    // A second look finds what the first did not; after a third the provider does not know what it wants.
    Claim claim = depth < 2 ? provider_.reclaim(inner) : Claim();
    if (claim.groups.empty()) options_.compile_failed(inner, error);
    std::vector<char> named(group.size(), 0);
    for (auto& [id, refusal] : claim.refused) {
      named[static_cast<size_t>(id)] = 1;
      options_.declined(graph, group[static_cast<size_t>(id)], refusal);
    }
    bool changed = false;
    for (auto& part : claim.groups) {
      std::vector<NodeId> outer;
      for (NodeId id : part) {
        named[static_cast<size_t>(id)] = 1;
        outer.push_back(group[static_cast<size_t>(id)]);
      }
      changed |= take(graph, outer, depth + 1);
    }
    for (size_t i = 0; i < group.size(); ++i)
      if (!named[i]) options_.declined(graph, group[i], {Reason::no_kernel, error.what()});
    return changed;
  }

  void tidy(Graph& graph) {
    if (options_.trace) {
      options_.trace->tidy(graph);
    } else {
      graph.compact();
      graph.sort();
    }
    verify(graph);
    // Constants that only compiled groups read have left the graph.
    for (auto& [name, constant] : constants_)
      if (options_.release && graph.find(name) == kNone) options_.release(constant);
    constants_.clear();
  }

  Provider& provider_;
  std::vector<CompiledGroup>& groups_;
  const PartitionOptions& options_;
  std::map<std::string, Tensor> constants_;  // of the groups taken from the graph at hand
};

}  // namespace

void partition(Graph& graph, Provider& provider, std::vector<CompiledGroup>& groups, const PartitionOptions& options) {
  Partitioner(provider, groups, options).cut(graph);
}

}  // namespace epona
