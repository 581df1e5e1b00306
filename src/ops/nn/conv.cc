#include <algorithm>

#include "ops/float_io.h"
#include "ops/ms/fused_activation.h"
#include "ops/nn/window.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Conv: Y[n,m,o] = B[m] + sum over c, k of X[n,c,o*stride+k*dilation-pad] * W[m,c,k], any rank, any groups.
/// FusedConv of com.microsoft adds input 3 and applies an activation.
class Conv final : public FloatKernel<Conv> {
 public:
  explicit Conv(const NodeInfo& info) : FloatKernel(info), window_(info), group_(info.attr("group", 1)) {
    if (group_ < 1) info.refuse(Code::invalid_graph, "group is ", group_);
    if (info.node().op != "FusedConv") return;
    activation_ = fused_activation(info, info.floats("activation_params"));
    if (activation_ && info.in_type(0) == DataType::float64) info.refuse(Code::not_implemented, "activation in double");
  }

  void shapes(ShapeContext& c) const override {
    const Shape &x = c.in(0), &w = c.in(1);
    if (x.rank() < 3 || w.rank() != x.rank())
      c.refuse("input ", x, " and weights ", w, " should have the same rank of 3 or more");
    if (x[1] != checked_mul(w[1], group_))
      c.refuse("input ", x, " has ", x[1], " channels; weights ", w, " and group ", group_, " need ", w[1] * group_);
    if (w[0] % group_ != 0) c.refuse("the ", w[0], " output channels do not divide into ", group_, " groups");
    Shape kernel(w.dims().subspan(2));
    if (!window_.kernel.empty() && Shape(window_.kernel) != kernel)
      c.refuse("kernel_shape is ", Shape(window_.kernel), " but weights have shape ", w);
    if (c.has(2) && c.in(2).size() != w[0]) c.refuse("bias has shape ", c.in(2), "; expected {", w[0], "}");
    Window window = slide(window_, c.node(), x, kernel);
    Shape y{x[0], w[0]};
    for (int64_t d : window.out) y.push_back(d);
    if (c.has(3) && c.in(3) != y) c.refuse("input 3 has shape ", c.in(3), "; expected ", y);
    c.workspace(FloatIo::bytes(c, {y}));
    c.out(0, std::move(y));
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *x = io.in<T>(0), *w = io.in<T>(1), *bias = io.in<T>(2), *add = io.in<T>(3);
    T* y = io.out<T>(0);
    const Shape &xs = c.in(0).shape, &ws = c.in(1).shape;
    Window window = slide(window_, c.node(), xs, Shape(ws.dims().subspan(2)));
    window.collapse();
    const int64_t out_channels = ws[0], in_channels = ws[1], per_group = out_channels / group_;
    const int64_t in_size = window.in_size(), out_size = window.out_size(), taps = window.kernel_size();
    const int last = window.rank() - 1;
    const int64_t stride = window.stride[last], out_w = window.out[last], in_w = window.in[last];
    const int64_t kernel_w = window.kernel[last];
    double cost = 0.4 * static_cast<double>(out_size) * static_cast<double>(in_channels * taps);
    c.pool().parallel_for(xs[0] * out_channels, cost, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        int64_t n = plane / out_channels, m = plane % out_channels;
        T* out = y + plane * out_size;
        std::fill_n(out, out_size, bias ? bias[m] : T(0));
        for (int64_t ic = 0; ic < in_channels; ++ic) {
          const T* in = x + (n * xs[1] + m / per_group * in_channels + ic) * in_size;
          const T* kernel = w + (m * in_channels + ic) * taps;
          for_each_row(window, [&](int64_t o, int64_t i, int64_t k) {
            for (int64_t kw = 0; kw < kernel_w; ++kw) {
              int64_t first, until;
              window.valid(last, kw, first, until);
              const T weight = kernel[k * kernel_w + kw];
              const T* from = in + i * in_w + kw * window.dilation[last] - window.pad[last];
              T* to = out + o * out_w;
              if (stride == 1)
                for (int64_t j = first; j < until; ++j) to[j] += weight * from[j];
              else
                for (int64_t j = first; j < until; ++j) to[j] += weight * from[j * stride];
            }
          });
        }
        for (int64_t j = 0; add && j < out_size; ++j) out[j] += add[plane * out_size + j];
        if constexpr (std::is_same_v<T, float>)
          if (activation_) activate(activation_, out, out, out_size);
      }
    });
    io.store();
  }

  WindowAttributes window_;
  int64_t group_;
  Activation activation_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(conv) {
  r.add({.name = "Conv", .make = make_kernel<Conv>});
  r.add({.name = "FusedConv", .domain = "com.microsoft", .make = make_kernel<Conv>});
}
