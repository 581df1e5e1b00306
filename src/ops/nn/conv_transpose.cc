#include <algorithm>

#include "ops/float_io.h"
#include "ops/nn/window.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// ConvTranspose: every input element adds its weighted kernel to the output at i*stride + k*dilation - pad.
/// The geometry is that of the convolution whose input is our output.
class ConvTranspose final : public Kernel {
 public:
  explicit ConvTranspose(const NodeInfo& info)
      : window_(info),
        group_(info.attr("group", 1)),
        output_padding_(info.ints("output_padding")),
        output_shape_(info.ints("output_shape")) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    if (group_ < 1) info.refuse(Code::invalid_graph, "group is ", group_);
    for (auto* list : {&output_padding_, &output_shape_})
      for (int64_t v : *list)
        if (v < 0 || v > INT32_MAX) info.refuse(Code::invalid_graph, "output_padding or output_shape holds ", v);
  }

  void shapes(ShapeContext& c) const override {
    const Shape &x = c.in(0), &w = c.in(1);
    if (x.rank() < 3 || w.rank() != x.rank())
      c.refuse("input ", x, " and weights ", w, " should have the same rank of 3 or more");
    if (x[1] != w[0]) c.refuse("input ", x, " and weights ", w, " differ in channels");
    if (x[1] % group_ != 0) c.refuse("the ", x[1], " input channels do not divide into ", group_, " groups");
    if (!window_.kernel.empty() && Shape(window_.kernel) != Shape(w.dims().subspan(2)))
      c.refuse("kernel_shape is ", Shape(window_.kernel), " but weights have shape ", w);
    int64_t channels = checked_mul(w[1], group_);
    if (c.has(2) && c.in(2).size() != channels) c.refuse("bias has shape ", c.in(2), "; expected {", channels, "}");
    Window window = geometry(c.node(), x, w);
    Shape y{x[0], channels};
    for (int64_t d : window.in) y.push_back(d);
    c.workspace(FloatIo::bytes(c, {y}));
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    if (c.in(0).type == DataType::float64)
      compute<double>(c);
    else
      compute<float>(c);
  }

 private:
  Window geometry(const Node& node, const Shape& x, const Shape& weights) const {
    using AutoPad = WindowAttributes::AutoPad;
    const int rank = x.rank() - 2;
    auto expect = [&](const char* key, const std::vector<int64_t>& values, int size) {
      if (!values.empty() && static_cast<int>(values.size()) != size)
        fail(Code::invalid_argument, describe(node), ": ", key, " has ", values.size(), " entries; expected ", size);
    };
    expect("strides", window_.strides, rank);
    expect("dilations", window_.dilations, rank);
    expect("output_padding", output_padding_, rank);
    if (window_.auto_pad == AutoPad::notset) expect("pads", window_.pads, 2 * rank);
    // Some writers give output_shape with the batch and channel dims in front.
    const int shape_skip = static_cast<int>(output_shape_.size()) == rank + 2 ? 2 : 0;
    expect("output_shape", output_shape_, rank + shape_skip);
    auto pick = [](const std::vector<int64_t>& values, int d, int64_t otherwise) {
      return values.empty() ? otherwise : values[d];
    };
    Window w;
    w.out = Shape(x.dims().subspan(2));
    w.kernel = Shape(weights.dims().subspan(2));
    w.in = w.stride = w.dilation = w.pad = w.pad_end = Shape(rank, 0);
    for (int d = 0; d < rank; ++d) {
      w.stride[d] = pick(window_.strides, d, 1);
      w.dilation[d] = pick(window_.dilations, d, 1);
      int64_t reach = checked_add(checked_mul(w.kernel[d] - 1, w.dilation[d]), 1);
      int64_t full = checked_add(checked_mul(w.out[d] - 1, w.stride[d]), reach + pick(output_padding_, d, 0));
      bool same = window_.auto_pad == AutoPad::same_upper || window_.auto_pad == AutoPad::same_lower;
      if (!output_shape_.empty() || same) {
        w.in[d] = output_shape_.empty() ? checked_mul(w.out[d], w.stride[d]) : output_shape_[shape_skip + d];
        // Below zero the output is larger than what the kernel reaches; halves round down, as in the standard's
        // formula.
        const int64_t total = full - w.in[d], half = total >> 1;
        w.pad[d] = window_.auto_pad == AutoPad::same_upper ? half : total - half;
        continue;
      }
      bool explicit_pads = window_.auto_pad == AutoPad::notset && !window_.pads.empty();
      w.pad[d] = explicit_pads ? window_.pads[d] : 0;
      w.in[d] = checked_add(full, -(w.pad[d] + (explicit_pads ? window_.pads[rank + d] : 0)));
      if (w.in[d] < 0 && w.out[d] == 0) w.in[d] = 0;
      if (w.in[d] < 0)
        fail(Code::invalid_argument, describe(node), ": pads cut more than the ", full, " outputs of dim ", d + 2);
    }
    return w;
  }

  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *x = io.in<T>(0), *w = io.in<T>(1), *bias = io.in<T>(2);
    T* y = io.out<T>(0);
    const Shape &xs = c.in(0).shape, &ws = c.in(1).shape;
    Window window = geometry(c.node(), xs, ws);
    const int64_t per_group = ws[1], channels = per_group * group_, in_channels = xs[1] / group_;
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

  WindowAttributes window_;
  int64_t group_;
  std::vector<int64_t> output_padding_, output_shape_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(conv_transpose) { r.add({.name = "ConvTranspose", .make = make_kernel<ConvTranspose>}); }
