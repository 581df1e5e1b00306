#pragma once
#include "ops/float_io.h"
#include "ops/nn/attention_core.h"

namespace epona {

/// Hands out pieces of a kernel's workspace, 64-byte aligned; `Pieces::bytes` is what n elements take.
template <class T>
class Pieces {
 public:
  explicit Pieces(void* start) : next_(static_cast<char*>(start)) {}
  static size_t bytes(int64_t n) { return FloatIo::align(static_cast<size_t>(n) * sizeof(T)); }
  T* take(int64_t n) {
    T* at = reinterpret_cast<T*>(next_);
    next_ += bytes(n);
    return at;
  }

 private:
  char* next_;
};

/// The key masks of com.microsoft's attention operators (int32), {batch} or {2 * batch}: the end, then the start, of
/// the valid keys of each entry; {batch, total}, {batch, q_len, total}: 0 masks a key. Masked keys get `filter` added.
struct KeyMask {
  int64_t rows = 0;  ///< query rows it tells apart: 1 or q_len

  /// Checks the shape.
  KeyMask(const ShapeContext& c, int input, int64_t batch, int64_t q_len, int64_t total) {
    const Shape& m = c.in(input);
    if (m == Shape{batch} || m == Shape{2 * batch} || m == Shape{batch, total})
      rows = 1;
    else if (m == Shape{batch, q_len, total})
      rows = q_len;
    else
      c.refuse("mask has shape ", m, " for ", batch, " sequences of ", q_len, " queries and ", total, " keys");
  }
  /// Writes batch * rows * total numbers and gives their view.
  static Heads<const float> fill(const Tensor& mask, int64_t batch, int64_t total, float filter, float* to);
};

/// Checks {batch or 1, heads or 1, q_len, total}.
void check_attention_bias(const ShapeContext& c, int input, int64_t batch, int64_t heads, int64_t q_len, int64_t total);
Heads<const float> attention_bias_view(const RunContext& c, int input, const float* data);

/// A head-major copy with a bias for every head's columns added; {batch, heads, rows, columns} in `to`.
Heads<const float> add_head_bias(Heads<const float> x, const float* bias, int64_t batch, int64_t heads, int64_t rows,
                                 int64_t columns, float* to, ThreadPool& pool);

}  // namespace epona
