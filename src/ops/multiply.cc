#include "ops/multiply.h"

#include <algorithm>

#include "ops/broadcast.h"

namespace epona {
namespace {

constexpr int64_t kRows = 4, kCols = 64;

/// A tile of the result; b's rows are contiguous.
template <class T, class Sum>
void tile(int64_t rows, int64_t cols, int64_t k, MatrixView<T> a, MatrixView<T> b, Sum* c, int64_t ldc) {
  Sum sums[kRows][kCols] = {};
  for (int64_t p = 0; p < k; ++p) {
    const T* line = b.data + p * b.row;
    for (int64_t i = 0; i < rows; ++i) {
      const Sum factor = static_cast<Sum>(a.data[i * a.row + p * a.col]);
      for (int64_t j = 0; j < cols; ++j) sums[i][j] += factor * static_cast<Sum>(line[j]);
    }
  }
  for (int64_t i = 0; i < rows; ++i) std::copy_n(sums[i], cols, c + i * ldc);
}

}  // namespace

template <class T, class Sum>
void multiply(int64_t m, int64_t n, int64_t k, MatrixView<T> a, MatrixView<T> b, Sum* c, int64_t ldc) {
  for (int64_t i = 0; i < m; i += kRows) {
    const int64_t rows = std::min(kRows, m - i);
    MatrixView<T> a_rows{a.data + i * a.row, a.row, a.col};
    if (b.col == 1) {
      for (int64_t j = 0; j < n; j += kCols)
        tile(rows, std::min(kCols, n - j), k, a_rows, {b.data + j, b.row, 1}, c + i * ldc + j, ldc);
      continue;
    }
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < n; ++j) {
        Sum sum = 0;
        const T *x = a_rows.data + r * a.row, *y = b.data + j * b.col;
        for (int64_t p = 0; p < k; ++p) sum += static_cast<Sum>(x[p * a.col]) * static_cast<Sum>(y[p * b.row]);
        c[(i + r) * ldc + j] = sum;
      }
  }
}

#define EPONA_INSTANCE(T, Sum) \
  template void multiply<T, Sum>(int64_t, int64_t, int64_t, MatrixView<T>, MatrixView<T>, Sum*, int64_t);
EPONA_INSTANCE(float, float)
EPONA_INSTANCE(double, double)
EPONA_INSTANCE(uint32_t, uint32_t)
EPONA_INSTANCE(uint64_t, uint64_t)
EPONA_INSTANCE(int16_t, uint32_t)

bool MatMulDims::init(const Shape& a, const Shape& b) {
  if (a.rank() == 0 || b.rank() == 0) return false;
  Shape left = a, right = b;
  if (a.rank() == 1) left.insert(0, 1);
  if (b.rank() == 1) right.push_back(1);
  m = left[left.rank() - 2];
  k = left.back();
  n = right.back();
  if (right[right.rank() - 2] != k) return false;
  a_batch = Shape(left.dims().first(static_cast<size_t>(left.rank() - 2)));
  b_batch = Shape(right.dims().first(static_cast<size_t>(right.rank() - 2)));
  batch = a_batch;
  if (!broadcast_into(batch, b_batch)) return false;
  out = batch;
  if (a.rank() > 1) out.push_back(m);
  if (b.rank() > 1) out.push_back(n);
  return true;
}

MatMulDims MatMulDims::of(const Node& node, const Shape& a, const Shape& b) {
  MatMulDims dims;
  if (!dims.init(a, b))
    fail(Code::invalid_argument, describe(node), ": matrices of shapes ", a, " and ", b, " do not multiply");
  return dims;
}

void MatMulDims::find(int64_t i, int64_t& a_index, int64_t& b_index) const {
  auto index_in = [&](const Shape& own) {
    int64_t index = 0, stride = 1, rest = i;
    for (int d = batch.rank() - 1, o = own.rank() - 1; d >= 0 && o >= 0; --d, --o) {
      if (own[o] != 1) index += rest % batch[d] * stride;
      stride *= own[o];
      rest /= batch[d];
    }
    return index;
  };
  a_index = index_in(a_batch);
  b_index = index_in(b_batch);
}

void each_row_block(ThreadPool& pool, int64_t batches, int64_t m, int64_t n, int64_t k,
                    FunctionRef<void(int64_t, int64_t, int64_t)> fn) {
  constexpr int64_t kBlock = 16;
  const int64_t blocks = (m + kBlock - 1) / kBlock;
  const double cost = 0.4 * static_cast<double>(std::min(m, kBlock)) * static_cast<double>(n) * static_cast<double>(k);
  pool.parallel_for(batches * blocks, cost, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t row = task % blocks * kBlock;
      fn(task / blocks, row, std::min(kBlock, m - row));
    }
  });
}

}  // namespace epona
