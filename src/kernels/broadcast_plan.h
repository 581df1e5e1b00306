#pragma once
#include <cstdint>
#include <span>

namespace epona {

/// Operands broadcast to one dense output, with neighbouring dims merged wherever every operand allows it. Plain data:
/// cheap enough to be made in every run.
struct BroadcastPlan {
  static constexpr int kMaxOperands = 8;
  static constexpr int kMaxDims = 8;  ///< after merging

  int operands = 0;
  int rank = 0;  ///< at least 1
  int64_t size = 0;
  int64_t dims[kMaxDims];
  int64_t strides[kMaxOperands][kMaxDims];  ///< in elements; 0 where the operand is repeated; the last one is 0 or 1

  /// Operand i lies element by element under the output.
  bool dense(int i) const;
  /// Operand i is one element.
  bool scalar(int i) const;
  /// The element of operand i under element `at` of the output.
  int64_t offset(int i, int64_t at) const;
};

/// Dims of a tensor.
using Dims = std::span<const int64_t>;

/// False when a merged rank or the number of operands is over the limit. `out` must be what the operands broadcast to.
bool plan_broadcast(Dims out, std::span<const Dims> operands, BroadcastPlan& plan);

/// Elements [begin, begin + n) of the output as `elem_bytes`-wide elements of operand i, written to `to`.
void gather_broadcast(const BroadcastPlan& plan, int i, const void* data, int elem_bytes, int64_t begin, int64_t n,
                      void* to);

}  // namespace epona
