#include <algorithm>

#include "ops/nn/conv_transpose.h"

namespace epona {

TransposedWindow::TransposedWindow(const NodeInfo& info)
    : window_(info),
      group_(info.attr("group", 1)),
      output_padding_(info.ints("output_padding")),
      output_shape_(info.ints("output_shape")) {
  if (group_ < 1) info.refuse(Code::invalid_graph, "group is ", group_);
  for (auto* list : {&output_padding_, &output_shape_})
    for (int64_t v : *list)
      if (v < 0 || v > INT32_MAX) info.refuse(Code::invalid_graph, "output_padding or output_shape holds ", v);
}

Window TransposedWindow::geometry(const Node& node, const Shape& x, const Shape& weights) const {
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

}  // namespace epona
