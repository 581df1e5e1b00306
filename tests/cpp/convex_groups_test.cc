#include "graph/convex_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace epona {
namespace {

/// A graph of nodes with one output each; edges[i] lists what node i reads.
Graph graph_of(const std::vector<std::vector<int>>& edges) {
  Graph graph;
  ValueId input = graph.add_value("input", Type::tensor(DataType::float32));
  graph.values[input].is_input = true;
  graph.inputs.push_back(input);
  std::vector<ValueId> made;
  for (size_t i = 0; i < edges.size(); ++i) {
    Node node;
    node.op = "Sum";
    node.name = cat("n", i);
    for (int from : edges[i]) node.inputs.push_back(made[static_cast<size_t>(from)]);
    if (node.inputs.empty()) node.inputs.push_back(input);
    made.push_back(graph.add_value(cat("v", i), Type::tensor(DataType::float32)));
    node.outputs.push_back(made.back());
    graph.add_node(std::move(node));
  }
  graph.outputs.push_back(made.back());
  return graph;
}

using Groups = std::vector<std::vector<NodeId>>;

TEST(ConvexGroups, TakesAllWhenAllIsSupported) {
  Graph graph = graph_of({{}, {0}, {0}, {1, 2}});
  EXPECT_EQ(convex_groups(graph, {1, 1, 1, 1}), (Groups{{0, 1, 2, 3}}));
}

TEST(ConvexGroups, SplitsWhereAPathLeavesAndComesBack) {
  // 0 -> 1 (not supported) -> 2, and 0 -> 2: taking 0 and 2 together would make a cycle.
  Graph graph = graph_of({{}, {0}, {0, 1}});
  EXPECT_EQ(convex_groups(graph, {1, 0, 1}), (Groups{{0}, {2}}));
}

TEST(ConvexGroups, SideBranchJoinsItsReaders) {
  // 0 -> 1 (not supported) -> 3; 2 is ready early and only 3 reads it.
  Graph graph = graph_of({{}, {0}, {}, {1, 2}});
  EXPECT_EQ(convex_groups(graph, {1, 0, 1, 1}), (Groups{{0}, {2, 3}}));
}

TEST(ConvexGroups, SideBranchThatAlsoFeedsTheUnsupportedStays) {
  // 0 -> 1 (not supported) -> 2, 0 -> 2 -> ...: 0 cannot move behind 1.
  Graph graph = graph_of({{}, {0}, {0, 1}, {2, 0}});
  EXPECT_EQ(convex_groups(graph, {1, 0, 1, 1}), (Groups{{0}, {2, 3}}));
}

TEST(ConvexGroups, UnconnectedPartsAreGroupsOfTheirOwn) {
  Graph graph = graph_of({{}, {}, {0}, {1}});
  EXPECT_EQ(convex_groups(graph, {1, 1, 1, 1}), (Groups{{0, 2}, {1, 3}}));
}

/// Nothing that a group does not contain lies on a path from it to it, also when all groups are contracted at once.
void expect_acyclic(const std::vector<std::vector<int>>& edges, const Groups& groups) {
  std::vector<int> group(edges.size(), -1);
  for (size_t g = 0; g < groups.size(); ++g)
    for (NodeId id : groups[g]) group[static_cast<size_t>(id)] = static_cast<int>(g);
  // Contracted: group g is vertex g, other nodes follow.
  size_t vertices = groups.size() + edges.size();
  auto vertex = [&](size_t node) { return group[node] >= 0 ? static_cast<size_t>(group[node]) : groups.size() + node; };
  std::vector<std::vector<size_t>> next(vertices);
  std::vector<int> waiting(vertices, 0);
  for (size_t i = 0; i < edges.size(); ++i)
    for (int from : edges[i])
      if (vertex(i) != vertex(static_cast<size_t>(from))) {
        next[vertex(static_cast<size_t>(from))].push_back(vertex(i));
        ++waiting[vertex(i)];
      }
  std::vector<size_t> ready;
  for (size_t v = 0; v < vertices; ++v)
    if (waiting[v] == 0) ready.push_back(v);
  size_t done = 0;
  while (!ready.empty()) {
    size_t v = ready.back();
    ready.pop_back();
    ++done;
    for (size_t to : next[v])
      if (--waiting[to] == 0) ready.push_back(to);
  }
  EXPECT_EQ(done, vertices) << "contracting the groups makes a cycle";
}

TEST(ConvexGroups, RandomGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    size_t count = 2 + random() % 40;
    std::vector<std::vector<int>> edges(count);
    std::vector<char> supported(count);
    for (size_t i = 0; i < count; ++i) {
      supported[i] = random() % 4 != 0;
      for (size_t from = 0; from < i; ++from)
        if (random() % count < 2) edges[i].push_back(static_cast<int>(from));
    }
    Graph graph = graph_of(edges);
    Groups groups = convex_groups(graph, supported);
    std::vector<char> seen(count, 0);
    for (auto& group : groups)
      for (NodeId id : group) {
        EXPECT_TRUE(supported[static_cast<size_t>(id)]);
        EXPECT_FALSE(seen[static_cast<size_t>(id)]);
        seen[static_cast<size_t>(id)] = 1;
      }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), std::count(supported.begin(), supported.end(), 1));
    expect_acyclic(edges, groups);
  }
}

TEST(ExtractGroup, InputsConstantsAndOutputs) {
  Graph graph = graph_of({{}, {0}, {1}, {1}});
  ValueId weight = graph.add_constant("weight", Tensor::scalar(2.0f));
  graph.nodes[1].inputs.push_back(weight);
  std::vector<ValueId> inputs, outputs;
  Graph group = extract_group(graph, {1, 2}, inputs, outputs);
  verify(group);
  ASSERT_EQ(inputs.size(), 1u);
  EXPECT_EQ(graph.values[inputs[0]].name, "v0");
  ASSERT_EQ(outputs.size(), 1u);  // node 3 reads what node 1 makes; nobody reads what node 2 makes
  EXPECT_EQ(graph.values[outputs[0]].name, "v1");
  EXPECT_TRUE(group.constant(group.find("weight")));
  EXPECT_EQ(group.nodes.size(), 2u);
}

}  // namespace
}  // namespace epona
