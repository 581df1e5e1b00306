#include "ops/ms/ms_attention_util.h"

#include <algorithm>

namespace epona {

Heads<const float> KeyMask::fill(const Tensor& mask, int64_t batch, int64_t total, float filter, float* to) {
  const int32_t* m = mask.as<int32_t>();
  if (mask.shape.rank() > 1) {
    const int64_t rows = mask.shape.rank() == 3 ? mask.shape[1] : 1;
    for (int64_t i = 0; i < mask.size(); ++i) to[i] = m[i] > 0 ? 0.0f : filter;
    return {to, rows * total, 0, rows > 1 ? total : 0};
  }
  const bool has_start = mask.shape[0] == 2 * batch;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t start = has_start ? m[batch + b] : 0, end = m[b];
    for (int64_t j = 0; j < total; ++j) to[b * total + j] = j >= start && j < end ? 0.0f : filter;
  }
  return {to, total, 0, 0};
}

void check_attention_bias(const ShapeContext& c, int input, int64_t batch, int64_t heads, int64_t q_len,
                          int64_t total) {
  const Shape& bias = c.in(input);
  if (bias.rank() != 4 || (bias[0] != 1 && bias[0] != batch) || (bias[1] != 1 && bias[1] != heads) ||
      bias[2] != q_len || bias[3] != total)
    c.refuse("attention_bias has shape ", bias, "; expected ", Shape{batch, heads, q_len, total});
}

Heads<const float> attention_bias_view(const RunContext& c, int input, const float* data) {
  if (!data) return {};
  const Shape& s = c.in(input).shape;
  return {data, s[0] == 1 ? 0 : s[1] * s[2] * s[3], s[1] == 1 ? 0 : s[2] * s[3], s[3]};
}

Heads<const float> add_head_bias(Heads<const float> x, const float* bias, int64_t batch, int64_t heads, int64_t rows,
                                 int64_t columns, float* to, ThreadPool& pool) {
  pool.parallel_for(batch * heads, static_cast<double>(rows * columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t r = 0; r < rows; ++r) {
        const float* from = x.at(i / heads, i % heads, r);
        float* out = to + (i * rows + r) * columns;
        for (int64_t k = 0; k < columns; ++k) out[k] = from[k] + bias[i % heads * columns + k];
      }
  });
  return head_major<const float>(to, heads, rows, columns);
}

}  // namespace epona
