#include <algorithm>
#include <cmath>

#include "passes/nchwc.h"
#include "passes/nchwc_rewriter.h"

namespace epona {
namespace {

// An image of few channels is read as it is: its blocks would be mostly padding.
constexpr int64_t kStemChannels = 8;
// Merging groups multiplies the arithmetic: beyond this factor one small product a group is faster.
constexpr int64_t kMaxMerged = 8;

bool constant_floats(const Graph& graph, ValueId id) {
  const Tensor* tensor = id == kNone ? nullptr : graph.constant(id);
  return tensor && tensor->type == DataType::float32 && tensor->data;
}

std::vector<int64_t> ints(const Graph& graph, const Node& node, const char* key) {
  auto* values = graph.attribute<std::vector<int64_t>>(node, key);
  return values ? *values : std::vector<int64_t>();
}

bool none_negative(const std::vector<int64_t>& values) {
  return std::none_of(values.begin(), values.end(), [](int64_t v) { return v < 0; });
}

bool fits(const std::vector<int64_t>& values, size_t count) { return values.empty() || values.size() == count; }

}  // namespace

NchwcRewriter::Grid NchwcRewriter::windowed_grid(const Node& node, ValueId y, const Grid& x,
                                                 const std::vector<int64_t>& kernel) {
  const auto pads = ints(graph_, node, "pads"), strides = ints(graph_, node, "strides");
  const auto dilations = ints(graph_, node, "dilations");
  const auto* auto_pad = graph_.attribute<std::string>(node, "auto_pad");
  const auto* ceil = graph_.attribute<int64_t>(node, "ceil_mode");
  const bool same = auto_pad && auto_pad->starts_with("SAME");
  const bool explicit_pads = !auto_pad || *auto_pad == "NOTSET" || auto_pad->empty();
  Grid grid{x[0]};
  const size_t rank = kernel.size();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t stride = strides.empty() ? 1 : strides[d];
    const int64_t reach = (kernel[d] - 1) * (dilations.empty() ? 1 : dilations[d]) + 1;
    const int64_t slack = (explicit_pads && !pads.empty() ? pads[d] + pads[rank + d] : 0) - reach;
    if (stride == 1 && (same || slack == -1)) {
      grid.push_back(x[d + 1]);
    } else if (same) {
      grid.push_back(cat("up(", x[d + 1], '/', stride, ')'));
    } else if (ceil && *ceil) {
      grid.push_back(cat('v', y, '.', d));  // its rule has exceptions: known to be equal to itself only
    } else {
      grid.push_back(cat('(', x[d + 1], '+', slack, ")/", stride));
    }
  }
  return grid;
}

bool NchwcRewriter::convolution(const Node& node) {
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : kNone;
  if (node.inputs.size() < 2 || !constant_floats(graph_, node.inputs[1])) return false;
  if (bias != kNone && !constant_floats(graph_, bias)) return false;
  const Shape w = graph_.constant(node.inputs[1])->shape;  // a copy: new values move the old ones
  const auto* group = graph_.attribute<int64_t>(node, "group");
  ConvParams p;
  p.groups = group ? *group : 1;
  if ((w.rank() != 3 && w.rank() != 4) || w.size() == 0 || p.groups < 1 || w[0] % p.groups != 0) return false;
  p.in_channels = w[1] * p.groups;
  p.out_channels = w[0];
  const size_t spatial = static_cast<size_t>(w.rank() - 2);
  const auto kernel_shape = ints(graph_, node, "kernel_shape"), pads = ints(graph_, node, "pads");
  const std::vector<int64_t> kernel(w.begin() + 2, w.end());
  if ((!kernel_shape.empty() && kernel_shape != kernel) || !none_negative(pads) || !fits(pads, 2 * spatial) ||
      !fits(ints(graph_, node, "strides"), spatial) || !fits(ints(graph_, node, "dilations"), spatial))
    return false;
  if (bias != kNone && graph_.constant(bias)->size() != p.out_channels) return false;
  const auto& shape = graph_.values[x].type.shape;
  if (!find(x) && (!shape || static_cast<int>(shape->size()) != w.rank())) return false;
  if (p.groups > 1 && !ConvDepthwise::supports(p) && !ConvDirect::supports(p)) {
    const int64_t merged = merged_groups(p.in_channels, p.out_channels, p.groups);
    if (merged == 0 || merged > kMaxMerged) return false;
  }

  Node conv = internal_copy(node, "ConvNchwc");
  Grid grid;
  if (!find(x) && p.groups == 1 && p.in_channels <= kStemChannels) {
    conv.attributes["input_nchw"] = int64_t{1};
    conv.inputs = {x};
    grid = grid_of(x);
  } else {
    const Blocked* b = make_blocked(x, p.in_channels);
    if (!b || b->rank != w.rank()) return false;
    conv.inputs = {b->value};
    grid = b->grid;
  }
  conv.inputs.push_back(node.inputs[1]);
  conv.inputs.push_back(bias);
  emit(std::move(conv), y, p.out_channels, windowed_grid(node, y, grid, kernel));
  return true;
}

bool NchwcRewriter::pool(const Node& node) {
  const Blocked* x = find(node.inputs[0]);
  const auto kernel = ints(graph_, node, "kernel_shape"), pads = ints(graph_, node, "pads");
  const size_t spatial = static_cast<size_t>(x->rank - 2);
  if (node.outputs.size() > 1 && node.outputs[1] != kNone) return false;  // MaxPool's indices
  if (kernel.size() != spatial || !none_negative(pads) || !fits(pads, 2 * spatial) ||
      !fits(ints(graph_, node, "strides"), spatial) || !fits(ints(graph_, node, "dilations"), spatial))
    return false;
  Node pool = internal_copy(node, node.op == "MaxPool" ? "MaxPoolNchwc" : "AveragePoolNchwc");
  pool.inputs = {x->value};
  const int64_t channels = x->channels;
  emit(std::move(pool), node.outputs[0], channels, windowed_grid(node, node.outputs[0], x->grid, kernel));
  return true;
}

bool NchwcRewriter::global_pool(const Node& node) {
  const Blocked* x = find(node.inputs[0]);
  if (!x) return false;
  if (node.op == "ReduceMean") {
    std::vector<int64_t> axes = ints(graph_, node, "axes");
    if (node.inputs.size() > 1 && node.inputs[1] != kNone) {
      const Tensor* tensor = graph_.constant(node.inputs[1]);
      if (!tensor || !tensor->data || tensor->type != DataType::int64) return false;
      axes = tensor->ints();
    }
    for (int64_t& axis : axes) axis += axis < 0 ? x->rank : 0;
    std::sort(axes.begin(), axes.end());
    const auto* keep = graph_.attribute<int64_t>(node, "keepdims");
    std::vector<int64_t> spatial;
    for (int d = 2; d < x->rank; ++d) spatial.push_back(d);
    if (axes != spatial || (keep && !*keep)) return false;
  }
  Node pool = internal_copy(node, node.op == "GlobalMaxPool" ? "GlobalMaxPoolNchwc" : "GlobalAveragePoolNchwc");
  pool.attributes.clear();
  pool.inputs = {x->value};
  Grid grid(x->grid.size(), "1");
  grid[0] = x->grid[0];
  const int64_t channels = x->channels;
  emit(std::move(pool), node.outputs[0], channels, std::move(grid));
  return true;
}

/// As a depthwise 1x1 convolution: it can take in an activation.
bool NchwcRewriter::batch_norm(const Node& node) {
  const Blocked* x = find(node.inputs[0]);
  if (!x || node.inputs.size() < 5) return false;
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNone) return false;
  if (auto* training = graph_.attribute<int64_t>(node, "training_mode"); training && *training) return false;
  if (auto* spatial = graph_.attribute<int64_t>(node, "spatial"); spatial && !*spatial) return false;
  const float* parameters[4];
  for (int i = 0; i < 4; ++i) {
    if (!constant_floats(graph_, node.inputs[i + 1])) return false;
    const Tensor* tensor = graph_.constant(node.inputs[i + 1]);
    if (tensor->size() != x->channels) return false;
    parameters[i] = tensor->as<float>();
  }
  const float* epsilon = graph_.attribute<float>(node, "epsilon");
  Shape shape{x->channels, 1};
  for (int d = 2; d < x->rank; ++d) shape.push_back(1);
  Tensor scale = Tensor::allocate(DataType::float32, shape);
  Tensor shift = Tensor::allocate(DataType::float32, Shape{x->channels});
  for (int64_t c = 0; c < x->channels; ++c) {
    const double s = parameters[0][c] / std::sqrt(static_cast<double>(parameters[3][c]) + (epsilon ? *epsilon : 1e-5f));
    scale.as<float>()[c] = static_cast<float>(s);
    shift.as<float>()[c] = static_cast<float>(parameters[1][c] - s * parameters[2][c]);
  }
  Node conv = internal_copy(node, "ConvNchwc");
  conv.attributes.clear();
  conv.attributes["group"] = x->channels;
  const std::string stem = graph_.values[node.inputs[1]].name;
  conv.inputs = {x->value, graph_.add_constant(stem + "_scale", std::move(scale)),
                 graph_.add_constant(stem + "_shift", std::move(shift))};
  const Grid grid = x->grid;
  const int64_t channels = x->channels;
  emit(std::move(conv), node.outputs[0], channels, grid);
  return true;
}

}  // namespace epona
