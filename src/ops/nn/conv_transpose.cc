#include <algorithm>

#include "ops/float_io.h"
#include "ops/nn/conv_transpose.h"
#include "ops/registry.h"

namespace epona {
namespace {

class ConvTranspose final : public FloatKernel<ConvTranspose> {
 public:
  explicit ConvTranspose(const NodeInfo& info) : FloatKernel(info), window_(info) {}

  void shapes(ShapeContext& c) const override {
    const Shape &x = c.in(0), &w = c.in(1);
    if (x.rank() < 3 || w.rank() != x.rank())
      c.refuse("input ", x, " and weights ", w, " should have the same rank of 3 or more");
    if (x[1] != w[0]) c.refuse("input ", x, " and weights ", w, " differ in channels");
    if (x[1] % window_.group() != 0)
      c.refuse("the ", x[1], " input channels do not divide into ", window_.group(), " groups");
    if (!window_.kernel().empty() && Shape(window_.kernel()) != Shape(w.dims().subspan(2)))
      c.refuse("kernel_shape is ", Shape(window_.kernel()), " but weights have shape ", w);
    int64_t channels = checked_mul(w[1], window_.group());
    if (c.has(2) && c.in(2).size() != channels) c.refuse("bias has shape ", c.in(2), "; expected {", channels, "}");
    Window window = window_.geometry(c.node(), x, w);
    Shape y{x[0], channels};
    for (int64_t d : window.in) y.push_back(d);
    c.workspace(FloatIo::bytes(c, {y}));
    c.out(0, std::move(y));
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *x = io.in<T>(0), *w = io.in<T>(1), *bias = io.in<T>(2);
    T* y = io.out<T>(0);
    const Shape &xs = c.in(0).shape, &ws = c.in(1).shape;
    Window window = window_.geometry(c.node(), xs, ws);
    const int64_t per_group = ws[1], channels = per_group * window_.group(), in_channels = xs[1] / window_.group();
    const int64_t x_size = window.out_size(), y_size = window.in_size(), taps = window.kernel_size();
    const int last = window.rank() - 1;
    const int64_t stride = window.stride[last], x_w = window.out[last], y_w = window.in[last];
    const int64_t kernel_w = window.kernel[last];
    double cost = 0.5 * static_cast<double>(x_size) * static_cast<double>(in_channels * taps);
    c.pool().parallel_for(xs[0] * channels, cost, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        int64_t n = plane / channels, m = plane % channels, group = m / per_group;
        T* out = y + plane * y_size;
        std::fill_n(out, y_size, bias ? bias[m] : T(0));
        for (int64_t ic = group * in_channels; ic < (group + 1) * in_channels; ++ic) {
          const T* in = x + (n * xs[1] + ic) * x_size;
          const T* kernel = w + (ic * per_group + m % per_group) * taps;
          for_each_row(window, [&](int64_t i, int64_t o, int64_t k) {
            for (int64_t kw = 0; kw < kernel_w; ++kw) {
              int64_t first, until;
              window.valid(last, kw, first, until);
              const T weight = kernel[k * kernel_w + kw];
              const T* from = in + i * x_w;
              T* to = out + o * y_w + kw * window.dilation[last] - window.pad[last];
              if (stride == 1)
                for (int64_t j = first; j < until; ++j) to[j] += weight * from[j];
              else
                for (int64_t j = first; j < until; ++j) to[j * stride] += weight * from[j];
            }
          });
        }
      }
    });
    io.store();
  }

  TransposedWindow window_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(conv_transpose) { r.add({.name = "ConvTranspose", .make = make_kernel<ConvTranspose>}); }
