#pragma once
#include <cstdint>

#include "base/thread_pool.h"
#include "ops/kernel.h"

namespace epona {

/// A matrix somewhere in memory; strides in elements.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row, col;
};

/// c[m, n] = a[m, k] * b[k, n], the plain loops behind the portable matrix operators. Instances: float and double,
/// uint32_t and uint64_t (which also serve the signed types: the low bits of a product do not depend on the sign), and
/// int16_t with 32-bit sums that may wrap, for 8-bit integers less their zero points.
template <class T, class Sum>
void multiply(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, Sum* c, int64_t ldc);

/// The dims of numpy.matmul: the shapes of the stacks of matrices and of the result.
struct MatMulDims {
  int64_t m = 1, n = 1, k = 1;
  Shape a_batch, b_batch, batch;  ///< all but the last two dims
  Shape out;

  /// False when the shapes do not fit.
  bool init(const Shape& a, const Shape& b);
  /// The same with an error that names the node.
  static MatMulDims of(const Node& node, const Shape& a, const Shape& b);
  int64_t batches() const { return batch.size(); }
  /// The matrices of a and b (counted in matrices) that make result `i`.
  void find(int64_t i, int64_t& a_index, int64_t& b_index) const;
};

/// Runs fn(batch, first_row, rows) over the rows of a stack of products, in parallel.
void each_row_block(ThreadPool& pool, int64_t batches, int64_t m, int64_t n, int64_t k,
                    FunctionRef<void(int64_t, int64_t, int64_t)> fn);

}  // namespace epona
