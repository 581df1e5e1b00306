#include "ops/nn/window.h"

namespace epona {

WindowAttributes::WindowAttributes(const NodeInfo& info)
    : kernel(info.ints("kernel_shape")),
      strides(info.ints("strides")),
      dilations(info.ints("dilations")),
      pads(info.ints("pads")),
      ceil_mode(info.attr("ceil_mode", 0) != 0) {
  std::string mode = info.attr("auto_pad", "NOTSET");
  if (mode == "VALID") {
    auto_pad = AutoPad::valid;
  } else if (mode == "SAME_UPPER") {
    auto_pad = AutoPad::same_upper;
  } else if (mode == "SAME_LOWER") {
    auto_pad = AutoPad::same_lower;
  } else if (mode != "NOTSET" && mode != "") {
    info.refuse(Code::invalid_graph, "auto_pad is \"", mode, "\"; expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  }
  // Sizes below 2^31 keep every product of two of them inside 63 bits.
  auto check = [&](const char* key, const std::vector<int64_t>& values, int64_t low) {
    for (int64_t v : values)
      if (v < low || v > INT32_MAX) info.refuse(Code::invalid_graph, key, " holds ", v);
  };
  check("kernel_shape", kernel, 1);
  check("strides", strides, 1);
  check("dilations", dilations, 1);
  check("pads", pads, -INT32_MAX);
}

namespace {

Shape per_dim(const std::vector<int64_t>& values, const Node& node, const char* key, int rank) {
  if (values.empty()) return Shape(rank, 1);
  if (static_cast<int>(values.size()) != rank)
    fail(Code::invalid_argument, describe(node), ": ", key, " has ", values.size(), " entries for an input with ", rank,
         " spatial dims");
  return Shape(values);
}

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

}  // namespace

Shape kernel_of(const WindowAttributes& a, const Node& node, const Shape& x) {
  if (x.rank() < 3)
    fail(Code::invalid_argument, describe(node), ": input has shape ", x, "; expected {N, C, spatial dims...}");
  if (a.kernel.empty()) fail(Code::invalid_graph, describe(node), ": kernel_shape is missing");
  return per_dim(a.kernel, node, "kernel_shape", x.rank() - 2);
}

Window slide(const WindowAttributes& a, const Node& node, const Shape& x, const Shape& kernel, int first_spatial) {
  using AutoPad = WindowAttributes::AutoPad;
  int rank = kernel.rank();
  Window w;
  w.in = Shape(x.dims().subspan(first_spatial, rank));
  w.kernel = kernel;
  w.stride = per_dim(a.strides, node, "strides", rank);
  w.dilation = per_dim(a.dilations, node, "dilations", rank);
  w.out = w.pad = w.pad_end = Shape(rank, 0);
  if (!a.pads.empty() && a.auto_pad == AutoPad::notset) {
    if (static_cast<int>(a.pads.size()) != 2 * rank)
      fail(Code::invalid_argument, describe(node), ": pads has ", a.pads.size(), " entries; expected ", 2 * rank);
    for (int d = 0; d < rank; ++d) w.pad[d] = a.pads[d], w.pad_end[d] = a.pads[rank + d];
  }
  for (int d = 0; d < rank; ++d) {
    int64_t reach = checked_add(checked_mul(kernel[d] - 1, w.dilation[d]), 1), in = w.in[d], stride = w.stride[d];
    if (a.auto_pad == AutoPad::same_upper || a.auto_pad == AutoPad::same_lower) {
      int64_t out = checked_add(in, stride - 1) / stride;
      int64_t total = std::max<int64_t>(0, checked_add(checked_mul(out - 1, stride), reach) - in);
      w.out[d] = out;
      w.pad[d] = a.auto_pad == AutoPad::same_upper ? total / 2 : total - total / 2;
      w.pad_end[d] = total - w.pad[d];
      continue;
    }
    int64_t slack = checked_add(checked_add(in, w.pad[d] + w.pad_end[d]), -reach);
    int64_t out = floor_div(slack + (a.ceil_mode ? stride - 1 : 0), stride) + 1;
    // A window that starts in the padding after the input is left out.
    if (a.ceil_mode && out > 0 && checked_mul(out - 1, stride) >= in + w.pad[d]) --out;
    if (out < 0 || kernel[d] < 1)
      fail(Code::invalid_argument, describe(node), ": a window of ", reach, " does not fit dim ", d + first_spatial,
           " of the input ", x, " with pads ", w.pad[d], " and ", w.pad_end[d]);
    w.out[d] = out;
  }
  return w;
}

void Window::valid(int d, int64_t tap, int64_t& first, int64_t& last) const {
  int64_t shift = pad[d] - tap * dilation[d];  // input position = output position * stride - shift
  first = shift > 0 ? (shift + stride[d] - 1) / stride[d] : 0;
  int64_t end = in[d] + shift;
  last = end > 0 ? std::min(out[d], (end + stride[d] - 1) / stride[d]) : 0;
  if (first > last) first = last;
}

void Window::collapse() {
  auto idle = [&](int d) { return kernel[d] == 1 && stride[d] == 1 && pad[d] == 0 && out[d] == in[d]; };
  while (rank() > 1 && idle(rank() - 1) && idle(rank() - 2)) {
    int last = rank() - 1;
    in[last - 1] *= in[last];
    out[last - 1] *= out[last];
    for (Shape* s : {&in, &out, &kernel, &stride, &dilation, &pad, &pad_end}) s->erase(last);
  }
}

}  // namespace epona
