#include <cmath>

#include "kernels/activation.h"
#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Gelu, BiasGelu, FastGelu, QuickGelu of com.microsoft: f(x + bias), the bias along the last dim.
class MsGelu final : public FloatKernel<MsGelu> {
 public:
  explicit MsGelu(const NodeInfo& info) : FloatKernel(info) {
    const std::string& op = info.node().op;
    f_ = op == "FastGelu"    ? Activation::gelu_tanh()
         : op == "QuickGelu" ? Activation::silu(info.attr("alpha", 1.702f))
                             : Activation::gelu();
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (c.has(1) && (x.rank() == 0 || c.in(1).size() != x.back()))
      c.refuse("bias has shape ", c.in(1), " for input of shape ", x);
    c.workspace(FloatIo::bytes(c, {x}));
    c.out(0, x);
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *x = io.in<T>(0), *bias = io.in<T>(1);
    T* y = io.out<T>(0);
    const int64_t size = c.in(0).size(), n = bias ? c.in(1).size() : std::min<int64_t>(size, 1024);
    if (n == 0) return;
    c.pool().parallel_for((size + n - 1) / n, 4.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * n, count = std::min(n, size - at);
        if (bias)
          for (int64_t i = 0; i < count; ++i) y[at + i] = x[at + i] + bias[i];
        apply(bias ? y + at : x + at, y + at, count);
      }
    });
    io.store();
  }

  void apply(const float* x, float* y, int64_t n) const { activate(f_, x, y, n); }
  void apply(const double* x, double* y, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) {
      const double v = x[i];
      if (f_.kind == ActivationKind::gelu)
        y[i] = 0.5 * v * (1 + std::erf(v * 0.70710678118654752));
      else if (f_.kind == ActivationKind::gelu_tanh)
        y[i] = 0.5 * v * (1 + std::tanh(0.79788456080286536 * (v + 0.044715 * v * v * v)));
      else
        y[i] = v / (1 + std::exp(-double{f_.a} * v));
    }
  }

  Activation f_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(ms_gelu) {
  for (const char* name : {"Gelu", "BiasGelu", "FastGelu", "QuickGelu"})
    r.add({.name = name, .domain = "com.microsoft", .make = make_kernel<MsGelu>, .inplace = 1});
}
