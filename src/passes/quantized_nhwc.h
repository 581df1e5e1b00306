#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/activation.h"
#include "passes/quantization.h"

namespace epona {

/// An operation from 8-bit integers to 8-bit integers that the graph spells as one node (QLinearConv, ...) or as
/// DequantizeLinear, float operators, QuantizeLinear.
struct ByteOperation {
  enum class Kind { conv, add, multiply, table, concat, max_pool, average_pool, global_average_pool, mat_mul, reshape };
  Kind kind = Kind::conv;
  Node core;                    ///< whose attributes (and shape input) count
  std::vector<ValueId> inputs;  ///< the integers
  std::vector<Quantization> x;  ///< of each input
  Quantization y;
  int low = 0, high = 0;  ///< of the result: its type's bounds, or closer when it was clamped
  // conv and mat_mul: integer weights with their zero points, what a unit of a sum is worth in steps of y, and the bias
  // in such units.
  ValueId weights = kNone, weights_zero = kNone;
  bool trans_b = false;
  std::vector<float> scale;
  std::vector<int32_t> bias;
  std::vector<uint8_t> table;  ///< of a table: the result for each bit pattern of the input
};

/// The table of clamp(quantise(f(dequantise(x)))) for a chain of functions, the last one first.
std::vector<uint8_t> byte_table(const Quantization& x, const Quantization& y, const std::vector<Activation>& functions);

/// Finds such operations.
class ByteMatcher {
 public:
  explicit ByteMatcher(const Graph& graph) : graph_(graph), readers_(graph.consumers()) {}
  /// The operation that ends with this node: QuantizeLinear, or an operator on integers.
  std::optional<ByteOperation> match(const Node& node) const;

 private:
  struct Source {
    ValueId bytes;
    Quantization quantization;
  };
  using Result = std::optional<ByteOperation>;

  std::optional<Source> source(ValueId value) const;
  const Node* inner(ValueId value, ByteOperation& op) const;
  bool add_source(ByteOperation& op, ValueId value) const;
  bool window_is_plain(const Node& node, size_t spatial) const;
  int spatial_rank(ValueId bytes) const;

  Result recognise(const Node& node) const;
  Result from_float(const Node& quantize) const;
  Result pool(ByteOperation op) const;
  Result global_pool(ByteOperation op) const;
  Result binary(ByteOperation op) const;
  Result table(const Node& quantize, const Quantization& y) const;
  Result concat(ByteOperation op) const;
  Result reshape(ByteOperation op) const;
  Result float_conv(ByteOperation op) const;
  Result float_mat_mul(ByteOperation op) const;
  Result linear_conv(const Node& node) const;
  Result linear_binary(const Node& node) const;
  Result linear_pool(const Node& node) const;
  Result linear_gemm(const Node& node) const;
  Result byte_max_pool(const Node& node) const;

  bool weights(ByteOperation& op, ValueId w, ValueId scale, ValueId zero, int axis) const;
  bool bias(ByteOperation& op, ValueId value, int64_t channels) const;
  Result conv(ByteOperation op) const;

  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
};

/// Rewrites a graph so that these operations run on integers, images channels last between them.
class ByteRewriter {
 public:
  explicit ByteRewriter(Graph& graph) : graph_(graph) {}
  int run();

 private:
  void find_live(const std::set<NodeId>& matched);
  void emit(NodeId id, const ByteOperation& op);
  void emit_concat(const ByteOperation& op, ValueId y, const std::string& name);
  ValueId map(ValueId x, DataType type, const std::vector<uint8_t>& table, const std::string& name, ValueId y = kNone);
  void quantize(const Node& node);
  /// The channels-last twin of an image of integers, made from the image if it has none.
  ValueId last(ValueId image);
  void make_plain(ValueId image);
  ValueId add_twin(ValueId image);
  ValueId constant(const std::string& name, Tensor tensor) {
    return graph_.add_constant(graph_.unique_name(name), std::move(tensor));
  }
  void transpose(ValueId from, ValueId to, std::vector<int64_t> perm, const std::string& name);

  Graph& graph_;
  std::map<NodeId, ByteOperation> operations_;
  std::set<ValueId> wanted_last_;
  std::vector<bool> live_;
  std::vector<Node> nodes_;
  std::map<ValueId, ValueId> twins_;
  std::set<ValueId> plain_missing_;  ///< values that so far exist as twins only
};

}  // namespace epona
