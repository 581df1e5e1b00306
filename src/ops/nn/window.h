#pragma once
#include <vector>

#include "ops/kernel.h"

namespace epona {

/// The attributes of operators that slide a window over the spatial dims: Conv, ConvTranspose, the pools.
struct WindowAttributes {
  enum class AutoPad : uint8_t { notset, valid, same_upper, same_lower };

  explicit WindowAttributes(const NodeInfo& info);

  std::vector<int64_t> kernel, strides, dilations, pads;  ///< empty: not given
  AutoPad auto_pad = AutoPad::notset;
  bool ceil_mode = false;
};

/// A window on sizes: all dims are spatial ones.
struct Window {
  Shape in, out, kernel, stride, dilation, pad, pad_end;

  int rank() const { return in.rank(); }
  int64_t in_size() const { return in.size(); }
  int64_t out_size() const { return out.size(); }
  int64_t kernel_size() const { return kernel.size(); }
  /// Output positions [first, last) of dim d whose tap k lies inside the input.
  void valid(int d, int64_t tap, int64_t& first, int64_t& last) const;
  /// Merges the last two dims while the window does nothing in them: long rows for 1x1 kernels.
  void collapse();
};

/// Output sizes for an input of shape {N, C, spatial...} (`first_spatial` says where the spatial dims start). `kernel`
/// is the shape of the window. Throws, naming the node, when attributes and shapes do not fit.
Window slide(const WindowAttributes& a, const Node& node, const Shape& x, const Shape& kernel, int first_spatial = 2);

/// The shape of the window from the kernel_shape attribute, checked against the input.
Shape kernel_of(const WindowAttributes& a, const Node& node, const Shape& x);

/// Calls fn(output_row, input_row, kernel_row) for every row (last dim) of outputs and every row of the kernel that
/// meets a row of the input; all three are counted from 0. Output rows come in order.
template <class Fn>
void for_each_row(const Window& w, Fn&& fn) {
  int outer = w.rank() - 1;
  int64_t out_rows = w.out.size(0, outer), kernel_rows = w.kernel.size(0, outer);
  Shape at(outer, 0);
  for (int64_t o = 0; o < out_rows; ++o) {
    Shape tap(outer, 0);
    for (int64_t k = 0; k < kernel_rows; ++k) {
      int64_t row = 0;
      bool inside = true;
      for (int d = 0; d < outer; ++d) {
        int64_t i = at[d] * w.stride[d] + tap[d] * w.dilation[d] - w.pad[d];
        inside = inside && i >= 0 && i < w.in[d];
        row = row * w.in[d] + i;
      }
      if (inside) fn(o, row, k);
      for (int d = outer - 1; d >= 0 && ++tap[d] == w.kernel[d]; --d) tap[d] = 0;
    }
    for (int d = outer - 1; d >= 0 && ++at[d] == w.out[d]; --d) at[d] = 0;
  }
}

}  // namespace epona
