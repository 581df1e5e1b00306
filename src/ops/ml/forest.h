#pragma once
#include <cmath>
#include <vector>

#include "ops/kernel.h"

namespace epona {

enum class SplitMode : uint8_t { leq, lt, gte, gt, eq, neq, member, leaf };

/// Decision trees as the attributes give them: nodes by index.
struct ForestSource {
  struct Node {
    SplitMode mode = SplitMode::leaf;
    bool missing_is_true = false;  ///< NaN goes to the true branch
    int32_t feature = 0;
    double value = 0;            ///< threshold
    int32_t yes = -1, no = -1;   ///< node indices
    int32_t begin = 0, end = 0;  ///< leaf: its votes; member: its set
  };
  struct Vote {
    int32_t target;
    double weight;
  };
  std::vector<Node> nodes;
  std::vector<int32_t> roots;
  std::vector<Vote> votes;
  std::vector<double> members;
  int32_t max_feature = -1;
};

/// From the attributes of TreeEnsembleClassifier ("class") and TreeEnsembleRegressor ("target"). Votes are for targets
/// [0, targets). Throws for ids that do not exist, loops, and lists of unequal length.
ForestSource forest_by_ids(const NodeInfo& info, const char* vote_prefix, int64_t targets);
/// From the attributes of TreeEnsemble.
ForestSource forest_by_index(const NodeInfo& info, int64_t targets);

/// The same trees laid out for evaluation: depth first, so that the true branch follows its node; leaves point to
/// themselves, so that several rows can walk in step.
template <class T>
class Forest {
 public:
  struct Vote {
    int32_t target;
    T weight;
  };

  explicit Forest(const ForestSource& source);

  int64_t trees() const { return static_cast<int64_t>(roots_.size()); }
  int32_t max_feature() const { return max_feature_; }

  /// Calls vote(row, first, last) with the votes of the leaf that each row reaches, tree by tree.
  template <class Fn>
  void evaluate(const T* x, int64_t rows, int64_t columns, Fn&& vote) const {
    auto walk_all = [&](auto&& goes_false) {
      for (int32_t root : roots_) {
        int64_t row = 0;
        for (; row + kLanes <= rows; row += kLanes)
          walk<kLanes>(root, x + row * columns, columns, row, goes_false, vote);
        for (; row < rows; ++row) walk<1>(root, x + row * columns, columns, row, goes_false, vote);
      }
    };
    if (leq_only_)
      walk_all([](const Node& node, int32_t, T v) { return !(v <= node.value); });
    else
      walk_all([this](const Node& node, int32_t at, T v) { return !test(node, at, v); });
  }

 private:
  static constexpr int kLanes = 8;
  struct Node {
    T value;
    int32_t feature;
    int32_t next[2];  // true, false
  };
  struct Detail {
    SplitMode mode;
    bool missing_is_true;
    int32_t begin, end;  // of members_
  };

  template <int N, class Test, class Fn>
  void walk(int32_t root, const T* x, int64_t columns, int64_t row, Test& goes_false, Fn& vote) const {
    int32_t at[N];
    for (int j = 0; j < N; ++j) at[j] = root;
    if (columns > 0) {
      int32_t moved;
      do {
        moved = 0;
        for (int j = 0; j < N; ++j) {
          const Node& node = nodes_[at[j]];
          const int32_t next = node.next[goes_false(node, at[j], x[j * columns + node.feature])];
          moved |= next ^ at[j];
          at[j] = next;
        }
      } while (moved);
    }
    for (int j = 0; j < N; ++j)
      vote(row + j, votes_.data() + first_vote_[at[j]], votes_.data() + first_vote_[at[j] + 1]);
  }

  bool test(const Node& node, int32_t at, T v) const {
    const Detail& detail = details_[at];
    if (detail.missing_is_true && std::isnan(v)) return true;
    switch (detail.mode) {
      case SplitMode::leq:
        return v <= node.value;
      case SplitMode::lt:
        return v < node.value;
      case SplitMode::gte:
        return v >= node.value;
      case SplitMode::gt:
        return v > node.value;
      case SplitMode::eq:
        return v == node.value;
      case SplitMode::neq:
        return v != node.value;
      case SplitMode::member:
        for (int32_t i = detail.begin; i < detail.end; ++i)
          if (members_[i] == v) return true;
        return false;
      case SplitMode::leaf:
        return true;
    }
    return true;
  }

  std::vector<Node> nodes_;
  std::vector<Detail> details_;
  std::vector<int32_t> roots_, first_vote_;
  std::vector<Vote> votes_;
  std::vector<T> members_;
  bool leq_only_ = true;
  int32_t max_feature_ = -1;
};

}  // namespace epona
