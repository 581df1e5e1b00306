#include <cmath>

#include "ops/float_io.h"
#include "ops/nn/rows.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// SkipLayerNormalization and SkipSimplifiedLayerNormalization: the sum of input, skip and bias, normalised over the
/// last dim (mean and variance, or root mean square). The skip may lack or broadcast the batch dim.
class SkipLayerNorm final : public Kernel {
 public:
  explicit SkipLayerNorm(const NodeInfo& info)
      : simplified_(info.node().op == "SkipSimplifiedLayerNormalization"), epsilon_(info.attr("epsilon", 1e-12f)) {
    if (!is_float(info.in_type(0)) || info.in_type(0) == DataType::float64)
      info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }

  void shapes(ShapeContext& c) const override {
    const Shape &x = c.in(0), &skip = c.in(1);
    const int rank = x.rank();
    if (rank < 2 || x.back() == 0)
      c.refuse("input has shape ", x, "; expected {batch, length, hidden} or {rows, hidden}");
    bool fits = skip == x;
    if (!fits && rank == 3) fits = skip == Shape{1, x[1], x[2]} || skip == Shape{x[1], x[2]};
    if (!fits) c.refuse("skip has shape ", skip, " for input of shape ", x);
    for (int i = 2; i < c.inputs(); ++i)
      if (c.has(i) && c.in(i).size() != x.back())
        c.refuse("input ", i, " has shape ", c.in(i), "; expected {", x.back(), "}");
    Shape rows = x;
    rows[rank - 1] = 1;
    c.workspace(FloatIo::bytes(c, {x, rows, rows, x}));
    c.out(0, x);
    c.out(1, rows);
    c.out(2, rows);
    c.out(3, x);
  }

  void run(const RunContext& c) const override {
    FloatIo io(c, 0);
    const float *x = io.in<float>(0), *skip = io.in<float>(1), *gamma = io.in<float>(2);
    const float *beta = simplified_ ? nullptr : io.in<float>(3), *bias = io.in<float>(simplified_ ? 3 : 4);
    float *y = io.out<float>(0), *mean_out = io.out<float>(1), *inverse_out = io.out<float>(2),
          *sum_out = io.out<float>(3);
    const int64_t n = c.in(0).shape.back(), rows = c.in(0).size() / n, skip_rows = c.in(1).size() / n;
    c.pool().parallel_for(rows, 3.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float *in = x + row * n, *add = skip + row % skip_rows * n;
        float* sum = (sum_out ? sum_out : y) + row * n;
        for (int64_t i = 0; i < n; ++i) sum[i] = in[i] + add[i];
        if (bias)
          for (int64_t i = 0; i < n; ++i) sum[i] += bias[i];
        const float mean = simplified_ ? 0.0f : row_sum(sum, n) / static_cast<float>(n);
        const float inverse = 1 / std::sqrt(row_square_sum(sum, mean, n) / static_cast<float>(n) + epsilon_);
        float* out = y + row * n;
        for (int64_t i = 0; i < n; ++i) out[i] = (sum[i] - mean) * inverse * gamma[i];
        if (beta)
          for (int64_t i = 0; i < n; ++i) out[i] += beta[i];
        if (mean_out) mean_out[row] = mean;
        if (inverse_out) inverse_out[row] = inverse;
      }
    });
    io.store();
  }

 private:
  bool simplified_;
  float epsilon_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(skip_layer_normalization) {
  for (const char* name : {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"})
    r.add({.name = name, .domain = "com.microsoft", .make = make_kernel<SkipLayerNorm>});
}
