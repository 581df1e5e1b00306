#pragma once
#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace epona {

enum class ReduceOp : uint8_t { sum, mean, max, min, prod, sum_square, l1, l2, log_sum, log_sum_exp };

/// Dims of a reduction, neighbours merged: kept and reduced dims alternate.
struct ReduceDims {
  static constexpr int kMaxDims = 8;
  int rank = 0;
  int64_t dims[kMaxDims];
  bool reduced[kMaxDims];
  int64_t outputs = 1;  ///< product of the kept dims
  int64_t count = 1;    ///< product of the reduced dims
};

/// `reduce_axis[d]` says whether dim d is reduced. False when the merged rank is over the limit.
bool plan_reduce(std::span<const int64_t> dims, std::span<const bool> reduce_axis, ReduceDims& plan);

/// y has plan.outputs elements, x may not overlap it. NaN anywhere in a reduced set gives NaN. An empty set gives the
/// operation's neutral element: 0, 1 for prod, -inf for max and the logs, inf for min, NaN for mean.
void reduce(ReduceOp op, const ReduceDims& plan, const float* x, float* y, ThreadPool& pool);

}  // namespace epona
