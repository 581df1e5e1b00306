#include <map>

#include "ops/ml/forest.h"
#include "ops/ml/ml_common.h"

namespace epona {
namespace {

SplitMode mode_of(const NodeInfo& info, const std::string& name) {
  static constexpr const char* kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                           "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
  for (int i = 0; i < 8; ++i)
    if (i != 6 && name == kNames[i]) return static_cast<SplitMode>(i);
  info.refuse(Code::invalid_graph, "nodes_modes holds \"", name, "\"");
}

void check_size(const NodeInfo& info, const std::string& key, size_t size, size_t expected) {
  if (size != expected) info.refuse(Code::invalid_graph, key, " has ", size, " entries; expected ", expected);
}

int32_t checked_index(const NodeInfo& info, const char* what, int64_t value, int64_t limit) {
  if (value < 0 || value >= limit) info.refuse(Code::invalid_graph, what, " ", value, " is not in [0, ", limit, ")");
  return static_cast<int32_t>(value);
}

// Every node has at most one parent (leaves with one vote may be shared) and no loop leads back: else the walk might
// not end, or the copies made by Forest be many.
void check_trees(const NodeInfo& info, ForestSource& forest) {
  std::vector<char> seen(forest.nodes.size());
  std::vector<int32_t> stack;
  for (int32_t root : forest.roots) {
    stack.push_back(root);
    while (!stack.empty()) {
      int32_t at = stack.back();
      stack.pop_back();
      const auto& node = forest.nodes[at];
      const bool leaf = node.mode == SplitMode::leaf;
      if (leaf && node.end - node.begin <= 1) continue;
      if (seen[at]++) info.refuse(Code::invalid_graph, "node ", at, " of the trees is reached twice");
      if (leaf) continue;
      forest.max_feature = std::max(forest.max_feature, node.feature);
      stack.push_back(node.no);
      stack.push_back(node.yes);
    }
  }
}

}  // namespace

ForestSource forest_by_ids(const NodeInfo& info, const char* vote_prefix, int64_t targets) {
  const auto trees = info.ints("nodes_treeids"), ids = info.ints("nodes_nodeids");
  const auto features = info.ints("nodes_featureids"), yes = info.ints("nodes_truenodeids");
  const auto no = info.ints("nodes_falsenodeids"), missing = info.ints("nodes_missing_value_tracks_true");
  const auto modes = info.strings("nodes_modes");
  const auto values = doubles_of(info, "nodes_values");
  const size_t n = trees.size();
  check_size(info, "nodes_nodeids", ids.size(), n);
  check_size(info, "nodes_featureids", features.size(), n);
  check_size(info, "nodes_truenodeids", yes.size(), n);
  check_size(info, "nodes_falsenodeids", no.size(), n);
  check_size(info, "nodes_modes", modes.size(), n);
  check_size(info, "nodes_values", values.size(), n);
  if (!missing.empty()) check_size(info, "nodes_missing_value_tracks_true", missing.size(), n);
  if (n > INT32_MAX) info.refuse(Code::not_implemented, n, " nodes");

  ForestSource forest;
  forest.nodes.resize(n);
  std::map<std::pair<int64_t, int64_t>, int32_t> index;
  std::map<int64_t, int32_t> root;
  for (size_t i = 0; i < n; ++i) {
    if (!index.try_emplace({trees[i], ids[i]}, static_cast<int32_t>(i)).second)
      info.refuse(Code::invalid_graph, "node ", ids[i], " of tree ", trees[i], " appears twice");
    if (root.try_emplace(trees[i], static_cast<int32_t>(i)).second) forest.roots.push_back(static_cast<int32_t>(i));
  }
  auto find = [&](int64_t tree, int64_t id) {
    auto it = index.find({tree, id});
    if (it == index.end()) info.refuse(Code::invalid_graph, "there is no node ", id, " in tree ", tree);
    return it->second;
  };
  for (size_t i = 0; i < n; ++i) {
    auto& node = forest.nodes[i];
    node.mode = mode_of(info, modes[i]);
    if (node.mode == SplitMode::leaf) continue;
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    node.feature = checked_index(info, "nodes_featureids entry", features[i], INT32_MAX);
    node.value = values[i];
    node.yes = find(trees[i], yes[i]);
    node.no = find(trees[i], no[i]);
  }

  // Votes, sorted by leaf. A stable order: sums come out the same as in the file's order.
  const std::string prefix = vote_prefix;
  const auto vote_trees = info.ints(prefix + "_treeids"), vote_nodes = info.ints(prefix + "_nodeids");
  const auto vote_targets = info.ints(prefix + "_ids");
  const auto weights = doubles_of(info, prefix + "_weights");
  check_size(info, prefix + "_nodeids", vote_nodes.size(), vote_trees.size());
  check_size(info, prefix + "_ids", vote_targets.size(), vote_trees.size());
  check_size(info, prefix + "_weights", weights.size(), vote_trees.size());
  std::vector<int32_t> leaf(vote_trees.size()), next(n + 1);
  for (size_t i = 0; i < leaf.size(); ++i) {
    leaf[i] = find(vote_trees[i], vote_nodes[i]);
    checked_index(info, "vote for target", vote_targets[i], targets);
    ++next[leaf[i] + 1];
  }
  for (size_t i = 0; i < n; ++i) {
    next[i + 1] += next[i];
    if (forest.nodes[i].mode != SplitMode::leaf) continue;
    forest.nodes[i].begin = next[i];
    forest.nodes[i].end = next[i + 1];
  }
  forest.votes.resize(leaf.size());
  for (size_t i = 0; i < leaf.size(); ++i)
    forest.votes[next[leaf[i]]++] = {static_cast<int32_t>(vote_targets[i]), weights[i]};
  check_trees(info, forest);
  return forest;
}

namespace {

std::vector<double> tensor_doubles(const NodeInfo& info, const char* key, bool required) {
  const Tensor* tensor = info.tensor_attr(key);
  std::vector<double> values;
  if (!tensor) {
    if (required) info.refuse(Code::invalid_graph, "attribute ", key, " is missing");
    return values;
  }
  values.resize(static_cast<size_t>(tensor->size()));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (tensor->type) {
      case DataType::float32:
        values[i] = tensor->as<float>()[i];
        break;
      case DataType::float64:
        values[i] = tensor->as<double>()[i];
        break;
      case DataType::float16:
        values[i] = static_cast<float>(tensor->as<Float16>()[i]);
        break;
      case DataType::uint8:
        values[i] = tensor->as<uint8_t>()[i];
        break;
      default:
        info.refuse(Code::not_implemented, key, " of type ", tensor->type);
    }
  }
  return values;
}

}  // namespace

ForestSource forest_by_index(const NodeInfo& info, int64_t targets) {
  const auto roots = info.ints("tree_roots"), features = info.ints("nodes_featureids");
  const auto yes = info.ints("nodes_truenodeids"), no = info.ints("nodes_falsenodeids");
  const auto yes_leaf = info.ints("nodes_trueleafs"), no_leaf = info.ints("nodes_falseleafs");
  const auto missing = info.ints("nodes_missing_value_tracks_true"), leaf_targets = info.ints("leaf_targetids");
  const auto splits = tensor_doubles(info, "nodes_splits", true), modes = tensor_doubles(info, "nodes_modes", true);
  const auto weights = tensor_doubles(info, "leaf_weights", true);
  const auto members = tensor_doubles(info, "membership_values", false);
  const size_t n = features.size(), leaves = leaf_targets.size();
  check_size(info, "nodes_truenodeids", yes.size(), n);
  check_size(info, "nodes_falsenodeids", no.size(), n);
  check_size(info, "nodes_trueleafs", yes_leaf.size(), n);
  check_size(info, "nodes_falseleafs", no_leaf.size(), n);
  check_size(info, "nodes_splits", splits.size(), n);
  check_size(info, "nodes_modes", modes.size(), n);
  check_size(info, "leaf_weights", weights.size(), leaves);
  if (!missing.empty()) check_size(info, "nodes_missing_value_tracks_true", missing.size(), n);
  if (n + leaves > INT32_MAX) info.refuse(Code::not_implemented, n + leaves, " nodes");

  ForestSource forest;
  forest.nodes.resize(n + leaves);  // leaf k is node n + k
  auto child = [&](int64_t id, bool is_leaf) {
    return is_leaf ? static_cast<int32_t>(n) + checked_index(info, "leaf", id, static_cast<int64_t>(leaves))
                   : checked_index(info, "node", id, static_cast<int64_t>(n));
  };
  size_t member = 0;
  for (size_t i = 0; i < n; ++i) {
    auto& node = forest.nodes[i];
    if (!(modes[i] >= 0 && modes[i] <= 6)) info.refuse(Code::invalid_graph, "nodes_modes holds ", modes[i]);
    node.mode = static_cast<SplitMode>(static_cast<int>(modes[i]));
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    node.feature = checked_index(info, "nodes_featureids entry", features[i], INT32_MAX);
    node.value = splits[i];
    node.yes = child(yes[i], yes_leaf[i] != 0);
    node.no = child(no[i], no_leaf[i] != 0);
    if (node.mode != SplitMode::member) continue;
    // Each set ends with a NaN.
    node.begin = static_cast<int32_t>(forest.members.size());
    for (; member < members.size() && !std::isnan(members[member]); ++member) forest.members.push_back(members[member]);
    if (member == members.size()) info.refuse(Code::invalid_graph, "membership_values has too few sets");
    ++member;
    node.end = static_cast<int32_t>(forest.members.size());
  }
  for (size_t k = 0; k < leaves; ++k) {
    forest.votes.push_back({checked_index(info, "leaf_targetids entry", leaf_targets[k], targets), weights[k]});
    forest.nodes[n + k].begin = static_cast<int32_t>(k);
    forest.nodes[n + k].end = static_cast<int32_t>(k + 1);
  }
  for (int64_t root : roots) {
    int32_t at = checked_index(info, "tree_roots entry", root, static_cast<int64_t>(n));
    // A tree that is one leaf: both branches of its root lead there.
    const auto& node = forest.nodes[at];
    forest.roots.push_back(node.yes == node.no && node.yes >= static_cast<int32_t>(n) ? node.yes : at);
  }
  check_trees(info, forest);
  return forest;
}

template <class T>
Forest<T>::Forest(const ForestSource& source) : max_feature_(source.max_feature) {
  struct Pending {
    int32_t source, parent;
    int branch;
  };
  std::vector<Pending> stack;
  for (double member : source.members) members_.push_back(static_cast<T>(member));
  for (int32_t root : source.roots) {
    roots_.push_back(static_cast<int32_t>(nodes_.size()));
    stack.push_back({root, -1, 0});
    while (!stack.empty()) {
      auto [from, parent, branch] = stack.back();
      stack.pop_back();
      const auto& node = source.nodes[from];
      const int32_t at = static_cast<int32_t>(nodes_.size());
      if (parent >= 0) nodes_[parent].next[branch] = at;
      nodes_.push_back({static_cast<T>(node.value), node.feature, {at, at}});
      details_.push_back({node.mode, node.missing_is_true, node.begin, node.end});
      first_vote_.push_back(static_cast<int32_t>(votes_.size()));
      if (node.mode == SplitMode::leaf) {
        for (int32_t i = node.begin; i < node.end; ++i)
          votes_.push_back({source.votes[i].target, static_cast<T>(source.votes[i].weight)});
        continue;
      }
      leq_only_ = leq_only_ && node.mode == SplitMode::leq && !node.missing_is_true;
      stack.push_back({node.no, at, 1});
      stack.push_back({node.yes, at, 0});
    }
  }
  first_vote_.push_back(static_cast<int32_t>(votes_.size()));
  if (leq_only_) details_.clear();
}

template class Forest<float>;
template class Forest<double>;

}  // namespace epona
