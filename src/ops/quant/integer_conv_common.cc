#include <algorithm>

#include "ops/integer_math.h"
#include "ops/quant/integer_conv.h"
#include "ops/quant/integer_matrix.h"

namespace epona {

IntegerConv::IntegerConv(const NodeInfo& info, Inputs inputs)
    : window_(info), group_(info.attr("group", 1)), in_(inputs) {
  for (int i : {in_.x, in_.w})
    if (info.in_type(i) != DataType::uint8 && info.in_type(i) != DataType::int8)
      info.refuse(Code::not_implemented, "type ", info.in_type(i), " of input ", i);
  if (group_ < 1) info.refuse(Code::invalid_graph, "group is ", group_);
}

Shape IntegerConv::shape(const ShapeContext& c, size_t& workspace) const {
  const Shape &x = c.in(in_.x), &w = c.in(in_.w);
  if (x.rank() < 3 || w.rank() != x.rank())
    c.refuse("input ", x, " and weights ", w, " should have the same rank of 3 or more");
  if (x[1] != checked_mul(w[1], group_) || w[0] % group_ != 0)
    c.refuse("input ", x, " and weights ", w, " do not fit group ", group_);
  if (c.has(in_.x_zero) && c.in(in_.x_zero).size() != 1)
    c.refuse("zero point of the input has shape ", c.in(in_.x_zero), ", expected a scalar");
  Shape kernel(w.dims().subspan(2));
  if (!window_.kernel.empty() && Shape(window_.kernel) != kernel)
    c.refuse("kernel_shape is ", Shape(window_.kernel), " but weights have shape ", w);
  Window window = slide(window_, c.node(), x, kernel);
  Shape y{x[0], w[0]};
  for (int64_t d : window.out) y.push_back(d);
  workspace = IntegerPair(x.size(), w.size()).bytes();
  return y;
}

void IntegerConv::run(const RunContext& c, void* workspace, FunctionRef<int32_t*(int64_t)> out_of,
                      FunctionRef<void(int64_t, int64_t, const int32_t*)> fn) const {
  const Tensor &x = c.in(in_.x), &w = c.in(in_.w);
  Window window = slide(window_, c.node(), x.shape, Shape(w.shape.dims().subspan(2)));
  window.collapse();
  const int64_t channels = w.shape[0], in_channels = w.shape[1], per_group = channels / group_;
  const int64_t in_size = window.in_size(), out_size = window.out_size(), taps = window.kernel_size();
  int16_t *wide_x = static_cast<int16_t*>(workspace), *wide_w = wide_x + IntegerPair(x.size(), w.size()).first;
  subtract_zeros(c.node(), x, c.has(in_.x_zero) ? &c.in(in_.x_zero) : nullptr, 1, x.size(), true, wide_x);
  subtract_zeros(c.node(), w, c.has(in_.w_zero) ? &c.in(in_.w_zero) : nullptr, channels, in_channels * taps, true,
                 wide_w);
  const int last = window.rank() - 1;
  const int64_t stride = window.stride[last], out_w = window.out[last], in_w = window.in[last];
  const int64_t kernel_w = window.kernel[last];
  const double cost = 0.4 * static_cast<double>(out_size) * static_cast<double>(in_channels * taps);
  c.pool().parallel_for(x.shape[0] * channels, cost, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t n = plane / channels, m = plane % channels;
      int32_t* out = out_of(plane);
      std::fill_n(out, out_size, 0);
      for (int64_t ic = 0; ic < in_channels; ++ic) {
        const int16_t* in = wide_x + (n * x.shape[1] + m / per_group * in_channels + ic) * in_size;
        const int16_t* kernel = wide_w + (m * in_channels + ic) * taps;
        for_each_row(window, [&](int64_t o, int64_t i, int64_t k) {
          for (int64_t kw = 0; kw < kernel_w; ++kw) {
            int64_t first, until;
            window.valid(last, kw, first, until);
            const int32_t weight = kernel[k * kernel_w + kw];
            const int16_t* from = in + i * in_w + kw * window.dilation[last] - window.pad[last];
            int32_t* to = out + o * out_w;
            if (stride == 1)
              for (int64_t j = first; j < until; ++j) to[j] = wrap_add(to[j], weight * from[j]);
            else
              for (int64_t j = first; j < until; ++j) to[j] = wrap_add(to[j], weight * from[j * stride]);
          }
        });
      }
      fn(m, plane, out);
    }
  });
}

}  // namespace epona
