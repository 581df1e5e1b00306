#include <algorithm>
#include <cmath>

#include "ops/float_io.h"
#include "ops/nn/window.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// DeformConv in two dims: a convolution whose taps are read at their place plus an offset, bilinearly, zero outside,
/// and multiplied by a mask.
class DeformConv final : public FloatKernel<DeformConv> {
 public:
  explicit DeformConv(const NodeInfo& info)
      : FloatKernel(info), window_(info), group_(info.attr("group", 1)), offset_group_(info.attr("offset_group", 1)) {
    if (group_ < 1 || offset_group_ < 1) info.refuse(Code::invalid_graph, "group or offset_group");
  }

  void shapes(ShapeContext& c) const override {
    const Shape &x = c.in(0), &w = c.in(1);
    if (x.rank() != 4 || w.rank() != 4)
      c.refuse("input ", x, " and weights ", w, ": only two spatial dims are supported");
    if (x[1] != checked_mul(w[1], group_) || w[0] % group_ != 0 || x[1] % offset_group_ != 0)
      c.refuse("input ", x, " and weights ", w, " do not fit ", group_, " groups and ", offset_group_,
               " offset groups");
    const Shape kernel{w[2], w[3]};
    if (!window_.kernel.empty() && Shape(window_.kernel) != kernel)
      c.refuse("kernel_shape is ", Shape(window_.kernel), " but weights have shape ", w);
    const Window window = slide(window_, c.node(), x, kernel);
    const Shape y{x[0], w[0], window.out[0], window.out[1]};
    const int64_t taps = checked_mul(offset_group_, kernel.size());
    if (c.in(2) != Shape{x[0], 2 * taps, y[2], y[3]})
      c.refuse("offset has shape ", c.in(2), "; expected ", Shape{x[0], 2 * taps, y[2], y[3]});
    if (c.has(3) && c.in(3).size() != w[0]) c.refuse("bias has shape ", c.in(3), "; expected {", w[0], "}");
    if (c.has(4) && c.in(4) != Shape{x[0], taps, y[2], y[3]})
      c.refuse("mask has shape ", c.in(4), "; expected ", Shape{x[0], taps, y[2], y[3]});
    // The samples of one image: {channels, taps, outputs}.
    const size_t width = c.in_type(0) == DataType::float64 ? 8 : 4;
    c.workspace(FloatIo::align(static_cast<size_t>(checked_mul(x[1] * kernel.size(), window.out_size())) * width) +
                FloatIo::bytes(c, {y}));
    c.out(0, y);
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    const Shape &xs = c.in(0).shape, &ws = c.in(1).shape;
    const Window w = slide(window_, c.node(), xs, Shape{ws[2], ws[3]});
    const int64_t channels = xs[1], taps = w.kernel_size(), out_size = w.out_size(), in_size = w.in_size();
    FloatIo io(c, static_cast<size_t>(channels * taps * out_size) * sizeof(T));
    const T *x = io.in<T>(0), *weights = io.in<T>(1), *offset = io.in<T>(2), *bias = io.in<T>(3), *mask = io.in<T>(4);
    T *y = io.out<T>(0), *samples = c.workspace_as<T>();
    const int64_t outputs = ws[0], per_group = outputs / group_, group_channels = ws[1];
    for (int64_t n = 0; n < xs[0]; ++n) {
      c.pool().parallel_for(channels * taps, 8.0 * static_cast<double>(out_size), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t k = i / taps, tap = i % taps, og = k / (channels / offset_group_);
          const int64_t plane = (n * offset_group_ + og) * taps + tap;
          sample(w, x + (n * channels + k) * in_size, tap, offset + 2 * plane * out_size,
                 mask ? mask + plane * out_size : nullptr, samples + i * out_size);
        }
      });
      double cost = 0.5 * static_cast<double>(group_channels * taps * out_size);
      c.pool().parallel_for(outputs, cost, [&](int64_t begin, int64_t end) {
        for (int64_t m = begin; m < end; ++m) {
          T* out = y + (n * outputs + m) * out_size;
          std::fill_n(out, out_size, bias ? bias[m] : T(0));
          const T* from = samples + m / per_group * group_channels * taps * out_size;
          for (int64_t i = 0; i < group_channels * taps; ++i) {
            const T weight = weights[m * group_channels * taps + i];
            for (int64_t j = 0; j < out_size; ++j) out[j] += weight * from[i * out_size + j];
          }
        }
      });
    }
    io.store();
  }

  template <class T>
  static void sample(const Window& w, const T* x, int64_t tap, const T* offset, const T* mask, T* out) {
    const int64_t height = w.in[0], width = w.in[1], out_w = w.out[1], size = w.out_size();
    const int64_t kh = tap / w.kernel[1], kw = tap % w.kernel[1];
    for (int64_t j = 0; j < size; ++j) {
      const int64_t out_row = j / out_w, out_col = j % out_w;
      const T row = static_cast<T>(out_row * w.stride[0] + kh * w.dilation[0] - w.pad[0]) + offset[j];
      const T col = static_cast<T>(out_col * w.stride[1] + kw * w.dilation[1] - w.pad[1]) + offset[size + j];
      T value = 0;
      // Comparisons are false for NaN, which reads as outside.
      if (row > -1 && row < static_cast<T>(height) && col > -1 && col < static_cast<T>(width)) {
        const T top = std::floor(row), left = std::floor(col), dy = row - top, dx = col - left;
        const int64_t r = static_cast<int64_t>(top), l = static_cast<int64_t>(left);
        auto at = [&](int64_t i, int64_t k) {
          return i >= 0 && i < height && k >= 0 && k < width ? x[i * width + k] : T(0);
        };
        value = (1 - dy) * ((1 - dx) * at(r, l) + dx * at(r, l + 1)) +
                dy * ((1 - dx) * at(r + 1, l) + dx * at(r + 1, l + 1));
      }
      out[j] = mask ? value * mask[j] : value;
    }
  }

  WindowAttributes window_;
  int64_t group_, offset_group_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(deform_conv) { r.add({.name = "DeformConv", .since = 19, .make = make_kernel<DeformConv>}); }
