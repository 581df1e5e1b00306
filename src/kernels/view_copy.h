#pragma once
#include <cstdint>
#include <span>

#include "base/thread_pool.h"

namespace epona {

/// A copy between two strided views of the same dims: transposition, slices, concatenation, repetition. Plain data.
struct ViewCopy {
  static constexpr int kMaxDims = 8;
  int elem_bytes = 4;  ///< 1, 2, 4, 8 or 16
  int rank = 0;
  int64_t dims[kMaxDims];
  int64_t in_strides[kMaxDims];   ///< in elements; 0 or negative is allowed
  int64_t out_strides[kMaxDims];  ///< in elements; positive, falling, no two elements on one address
};

/// Drops dims of one, orders dims by falling output stride and merges neighbours. False when more than kMaxDims remain.
bool plan_copy(int elem_bytes, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
               std::span<const int64_t> out_strides, ViewCopy& plan);

/// The plan of a dense transposition: output dim d is input dim perm[d].
bool plan_transpose(int elem_bytes, std::span<const int64_t> in_dims, std::span<const int64_t> perm, ViewCopy& plan);

/// `in` and `out` are the addresses of the first elements; the memory may not overlap.
void view_copy(const ViewCopy& plan, const void* in, void* out, ThreadPool& pool);

}  // namespace epona
