#include <algorithm>

#include "passes/nchwc.h"
#include "passes/nchwc_rewriter.h"

namespace epona {
namespace {

// With fewer output channels than this, the taps share blocks and the result is written in planes.
constexpr int64_t kFewChannels = 5;

const std::vector<int64_t>* ints(const Graph& graph, const Node& node, const char* key) {
  return graph.attribute<std::vector<int64_t>>(node, key);
}

bool all_are(const std::vector<int64_t>* values, int64_t wanted) {
  return !values || std::all_of(values->begin(), values->end(), [&](int64_t v) { return v == wanted; });
}

}  // namespace

/// A transposed convolution whose windows do not overlap (kernel = stride) is a 1x1 convolution to taps * O channels
/// and a copy of every tap's pixels to their places.
bool NchwcRewriter::transposed_convolution(const Node& node) {
  const Blocked* x = find(node.inputs[0]);
  const Tensor* w = node.inputs.size() > 1 && node.inputs[1] != kNone ? graph_.constant(node.inputs[1]) : nullptr;
  const ValueId bias_id = node.inputs.size() > 2 ? node.inputs[2] : kNone;
  const Tensor* bias = bias_id == kNone ? nullptr : graph_.constant(bias_id);
  if (!x || x->rank != 4 || !w || !w->data || w->type != DataType::float32 || w->shape.rank() != 4) return false;
  if (bias_id != kNone && (!bias || !bias->data || bias->type != DataType::float32)) return false;
  const auto* group = graph_.attribute<int64_t>(node, "group");
  const auto* strides = ints(graph_, node, "strides");
  const auto* auto_pad = graph_.attribute<std::string>(node, "auto_pad");
  const int64_t kh = w->shape[2], kw = w->shape[3], out = w->shape[1], in = w->shape[0];
  if ((group && *group != 1) || in != x->channels || !strides || strides->size() != 2 || (*strides)[0] != kh ||
      (*strides)[1] != kw || !all_are(ints(graph_, node, "pads"), 0) || !all_are(ints(graph_, node, "dilations"), 1) ||
      !all_are(ints(graph_, node, "output_padding"), 0) || node.attributes.contains("output_shape") ||
      (auto_pad && *auto_pad != "NOTSET" && !auto_pad->empty()) || (bias && bias->size() != out))
    return false;

  const bool planes = out < kFewChannels;
  const int64_t taps = kh * kw, tap_channels = planes ? out : channel_blocks(out) * kChannelBlock;
  Tensor wide = Tensor::allocate(DataType::float32, Shape{taps * tap_channels, in, 1, 1});
  Tensor shift = Tensor::allocate(DataType::float32, Shape{taps * tap_channels});
  std::fill_n(wide.as<float>(), wide.size(), 0.0f);
  std::fill_n(shift.as<float>(), shift.size(), 0.0f);
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t o = 0; o < out; ++o) {
      const int64_t row = tap * tap_channels + o;
      for (int64_t i = 0; i < in; ++i) wide.as<float>()[row * in + i] = w->as<float>()[(i * out + o) * taps + tap];
      if (bias) shift.as<float>()[row] = bias->as<float>()[o];
    }
  }
  const ValueId y = node.outputs[0];
  const std::string stem = graph_.values[node.inputs[1]].name;
  Grid grid = x->grid;
  Node conv = internal_copy(node, "ConvNchwc");
  conv.attributes.clear();
  conv.inputs = {x->value, graph_.add_constant(stem + "_taps", std::move(wide)),
                 graph_.add_constant(stem + "_shift", std::move(shift))};
  Type type = Type::tensor(DataType::float32);
  const ValueId taps_value = graph_.add_value(graph_.unique_name(graph_.values[y].name + "_taps"), type);
  conv.outputs = {taps_value};
  nodes_.push_back(std::move(conv));

  Node spread = internal_copy(node, planes ? "SpreadTapsToPlanes" : "SpreadTapsNchwc");
  spread.attributes.clear();
  spread.attributes["kernel_shape"] = std::vector<int64_t>{kh, kw};
  spread.inputs = {taps_value};
  if (planes) {
    spread.attributes["channels"] = out;
    spread.outputs = {y};
    nodes_.push_back(std::move(spread));
    return true;
  }
  grid[1] = cat(grid[1], '*', kh);
  grid[2] = cat(grid[2], '*', kw);
  emit(std::move(spread), y, out, std::move(grid));
  return true;
}

/// Resize of the spatial dims by constant factors works on blocks as it is.
bool NchwcRewriter::resize(const Node& node) {
  const Blocked* x = find(node.inputs[0]);
  if (!x || x->plain_exists || node.op != "Resize" || node.opset < 11 || node.attributes.contains("axes") ||
      node.inputs.size() < 3 || node.inputs[2] == kNone || (node.inputs.size() > 3 && node.inputs[3] != kNone))
    return false;
  const auto* coordinates = graph_.attribute<std::string>(node, "coordinate_transformation_mode");
  if (coordinates && *coordinates == "tf_crop_and_resize") return false;
  const Tensor* scales = graph_.constant(node.inputs[2]);
  if (!scales || !scales->data || scales->type != DataType::float32 || scales->size() != x->rank) return false;
  const float* s = scales->as<float>();
  if (s[0] != 1 || s[1] != 1) return false;
  Tensor blocked = Tensor::allocate(DataType::float32, Shape{x->rank + 1});
  std::copy_n(s, x->rank, blocked.as<float>());
  blocked.as<float>()[x->rank] = 1;
  Node copy = node;
  copy.inputs = {x->value, kNone,
                 graph_.add_constant(graph_.values[node.inputs[2]].name + "_nchwc", std::move(blocked))};
  Grid grid = x->grid;
  for (size_t d = 1; d < grid.size(); ++d) grid[d] = cat(grid[d], '*', s[d + 1]);
  const int64_t channels = x->channels;
  emit(std::move(copy), node.outputs[0], channels, std::move(grid));
  return true;
}

}  // namespace epona
