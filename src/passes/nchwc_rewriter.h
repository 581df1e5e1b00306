#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace epona {

/// Rewrites the float convolutions of a graph, and what surrounds them, to the layout NCHW16c. Every image of the old
/// graph that has a blocked twin is written by one node of the new graph; the old value itself is made, by a reorder,
/// only when something still reads it.
class NchwcRewriter {
 public:
  explicit NchwcRewriter(Graph& graph) : graph_(graph), readers_(graph.consumers()) {}
  /// Returns the number of nodes that now work on blocked images.
  int run();

 private:
  /// What is known of the sizes of an image: two images with equal grids have equal sizes. A size is a number or a text
  /// that says how it follows from an input's.
  using Grid = std::vector<std::string>;  // batch, spatial dims...

  struct Blocked {
    ValueId value = kNone;  ///< of rank `rank` + 1
    int64_t channels = 0;
    int rank = 4;
    Grid grid;
    bool plain_exists = false;  ///< the old value is there as well
    int made_by = -1;           ///< index into nodes_
  };

  // One function a family of operators; each returns false when the node has to stay as it is.
  bool convert(const Node& node);
  bool convolution(const Node& node);
  bool transposed_convolution(const Node& node);
  bool pool(const Node& node);
  bool global_pool(const Node& node);
  bool batch_norm(const Node& node);
  bool unary(const Node& node);
  bool element_wise(const Node& node);
  bool concat(const Node& node);
  bool resize(const Node& node);
  bool shape(const Node& node);

  bool fuse_residual(const Node& node);
  ValueId blocked_operand(ValueId id, int rank, int64_t channels);
  ValueId block_constant(const Tensor& tensor, int rank, int64_t channels, const std::string& name);

  /// The blocked twin of an image, nullptr when there is none.
  Blocked* find(ValueId id);
  /// The same, reordering the image if its rank and channels are known.
  Blocked* make_blocked(ValueId id, int64_t channels);
  /// Makes sure that the old value is written.
  void make_plain(ValueId id);
  /// Appends a node whose first output is the blocked twin of `y`.
  Node& emit(Node node, ValueId y, int64_t channels, Grid grid);
  /// Lets `y` be what `x` has become: its last operation has taken in the node between them.
  void absorb(ValueId x, ValueId y);
  ValueId add_blocked_value(ValueId y, int64_t channels, int rank);
  Grid grid_of(ValueId id);
  Grid windowed_grid(const Node& node, ValueId y, const Grid& x, const std::vector<int64_t>& kernel);
  bool is_float_image(ValueId id) const;
  void rebuild();

  Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<Node> nodes_;  ///< the new graph
  std::map<ValueId, Blocked> blocked_;
  int converted_ = 0;
};

/// A copy of a node under another operator, without inputs and outputs.
Node internal_copy(const Node& node, const char* op);

}  // namespace epona
