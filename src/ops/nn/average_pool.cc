#include <algorithm>
#include <cmath>

#include "ops/float_io.h"
#include "ops/nn/window.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// AveragePool and LpPool: a sum over the window, then a division by the number of cells or a root.
class SumPool final : public FloatKernel<SumPool> {
 public:
  explicit SumPool(const NodeInfo& info) : FloatKernel(info), window_(info), lp_(info.node().op == "LpPool") {
    include_pad_ = info.attr("count_include_pad", 0) != 0;
    if (lp_) p_ = info.opset() == 1 ? info.attr("p", 2.0f) : static_cast<float>(info.attr("p", 2));
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    Window window = slide(window_, c.node(), x, kernel_of(window_, c.node(), x));
    Shape y{x[0], x[1]};
    for (int64_t d : window.out) y.push_back(d);
    c.workspace(FloatIo::bytes(c, {y}));
    c.out(0, std::move(y));
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T* x = io.in<T>(0);
    T* y = io.out<T>(0);
    const Shape& xs = c.in(0).shape;
    const Window w = slide(window_, c.node(), xs, kernel_of(window_, c.node(), xs));
    const int64_t in_size = w.in_size(), out_size = w.out_size();
    const int last = w.rank() - 1;
    const int64_t stride = w.stride[last], out_w = w.out[last], in_w = w.in[last];
    double cost = (lp_ && p_ != 1 && p_ != 2 ? 20.0 : 0.5) * static_cast<double>(out_size * w.kernel_size());
    c.pool().parallel_for(xs[0] * xs[1], cost, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const T* in = x + plane * in_size;
        T* out = y + plane * out_size;
        std::fill_n(out, out_size, T(0));
        for_each_row(w, [&](int64_t o, int64_t i, int64_t) {
          for (int64_t kw = 0; kw < w.kernel[last]; ++kw) {
            int64_t first, until;
            w.valid(last, kw, first, until);
            const T* from = in + i * in_w + kw * w.dilation[last] - w.pad[last];
            T* to = out + o * out_w;
            if (!lp_)
              for (int64_t j = first; j < until; ++j) to[j] += from[j * stride];
            else if (p_ == 2)
              for (int64_t j = first; j < until; ++j) to[j] += from[j * stride] * from[j * stride];
            else if (p_ == 1)
              for (int64_t j = first; j < until; ++j) to[j] += std::abs(from[j * stride]);
            else
              for (int64_t j = first; j < until; ++j) to[j] += std::pow(std::abs(from[j * stride]), T(p_));
          }
        });
        finish(w, out);
      }
    });
    io.store();
  }

  template <class T>
  void finish(const Window& w, T* out) const {
    int64_t size = w.out_size();
    if (lp_) {
      if (p_ == 2)
        for (int64_t j = 0; j < size; ++j) out[j] = std::sqrt(out[j]);
      else if (p_ != 1)
        for (int64_t j = 0; j < size; ++j) out[j] = std::pow(out[j], T(1) / T(p_));
      return;
    }
    const int last = w.rank() - 1;
    const int64_t width = w.out[last];
    Shape at(last, 0);
    for (int64_t row = 0; width > 0 && row < size / width; ++row) {
      int64_t outer = 1;
      for (int d = 0; d < last; ++d) outer *= cells(w, d, at[d]);
      for (int64_t j = 0; j < width; ++j) out[row * width + j] /= static_cast<T>(outer * cells(w, last, j));
      for (int d = last - 1; d >= 0 && ++at[d] == w.out[d]; --d) at[d] = 0;
    }
  }

  /// Taps of the window at output position o that lie in the input, or with count_include_pad in the padded input.
  int64_t cells(const Window& w, int d, int64_t o) const {
    int64_t start = o * w.stride[d] - w.pad[d], step = w.dilation[d];
    int64_t end = w.in[d] + (include_pad_ ? w.pad_end[d] : 0);
    int64_t until = std::clamp<int64_t>(end > start ? (end - start + step - 1) / step : 0, 0, w.kernel[d]);
    int64_t from = include_pad_ || start >= 0 ? 0 : std::min((-start + step - 1) / step, until);
    return until - from;
  }

  WindowAttributes window_;
  bool lp_, include_pad_;
  float p_ = 2;
};

}  // namespace
}  // namespace epona

EPONA_OPS(average_pool) {
  r.add({.name = "AveragePool", .make = make_kernel<SumPool>});
  r.add({.name = "LpPool", .make = make_kernel<SumPool>});
}
