#include <algorithm>
#include <cmath>
#include <cstring>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

/// y = scale * x + shift, per channel.
struct Affine {
  std::vector<double> scale, shift;
};

const float* floats(const Graph& graph, ValueId id, int64_t count) {
  const Tensor* tensor = id == kNone ? nullptr : graph.constant(id);
  if (!tensor || tensor->type != DataType::float32 || !tensor->data || tensor->size() != count) return nullptr;
  return tensor->as<float>();
}

/// A constant that broadcasts along channels only: one element, or [C, 1, 1], [1, C, 1, 1], ... for an image of `rank`.
bool per_channel(const Graph& graph, ValueId id, int64_t channels, int rank, std::vector<double>& out) {
  const Tensor* tensor = id == kNone ? nullptr : graph.constant(id);
  if (!tensor || tensor->type != DataType::float32 || !tensor->data || tensor->shape.rank() > rank) return false;
  const float* data = tensor->as<float>();
  if (tensor->size() == 1) {
    out.assign(channels, data[0]);
    return true;
  }
  const int axis = tensor->shape.rank() - (rank - 1);  // the channel dim of the constant
  if (axis < 0 || tensor->size() != channels || tensor->shape[axis] != channels) return false;
  out.assign(data, data + channels);
  return true;
}

bool batch_norm(const Graph& graph, const Node& node, int64_t channels, Affine& affine) {
  if (node.inputs.size() < 5) return false;
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kNone) return false;
  if (auto* training = graph.attribute<int64_t>(node, "training_mode"); training && *training) return false;
  if (auto* spatial = graph.attribute<int64_t>(node, "spatial"); spatial && !*spatial) return false;
  const float* parameters[4];
  for (int i = 0; i < 4; ++i)
    if (!(parameters[i] = floats(graph, node.inputs[i + 1], channels))) return false;
  const float* epsilon = graph.attribute<float>(node, "epsilon");
  for (int64_t c = 0; c < channels; ++c) {
    const double scale =
        parameters[0][c] / std::sqrt(static_cast<double>(parameters[3][c]) + (epsilon ? *epsilon : 1e-5f));
    affine.scale.push_back(scale);
    affine.shift.push_back(parameters[1][c] - scale * parameters[2][c]);
  }
  return true;
}

bool element_wise(const Graph& graph, const Node& node, ValueId x, int64_t channels, int rank, Affine& affine) {
  if (node.inputs.size() != 2) return false;
  const bool left = node.inputs[0] == x;
  std::vector<double> values;
  if (!per_channel(graph, node.inputs[left ? 1 : 0], channels, rank, values)) return false;
  affine.scale.assign(channels, 1);
  affine.shift.assign(channels, 0);
  if (node.op == "Add") {
    affine.shift = values;
  } else if (node.op == "Mul") {
    affine.scale = values;
  } else if (node.op == "Sub") {
    for (double& v : values) v = left ? -v : v;
    affine.shift = values;
    if (!left) affine.scale.assign(channels, -1);
  } else if (node.op == "Div" && left) {
    for (int64_t c = 0; c < channels; ++c) affine.scale[c] = 1 / values[c];
  } else {
    return false;
  }
  return true;
}

bool finite(const Affine& affine) {
  const auto ok = [](double v) { return std::isfinite(static_cast<float>(v)); };
  return std::all_of(affine.scale.begin(), affine.scale.end(), ok) &&
         std::all_of(affine.shift.begin(), affine.shift.end(), ok);
}

/// Makes `conv` compute scale * conv + shift, with constants of its own.
void apply(Graph& graph, Node& conv, const Tensor& weights, int64_t channels, const Affine& affine) {
  const bool transposed = conv.op == "ConvTranspose";
  Tensor w = weights.clone();
  float* data = w.as<float>();
  if (transposed) {  // [I, O / group, ...]
    const int64_t per_group = w.shape[1], taps = w.shape.size(2, w.shape.rank()), groups = channels / per_group;
    const int64_t in_group = w.shape[0] / groups;
    for (int64_t i = 0; i < w.shape[0]; ++i)
      for (int64_t o = 0; o < per_group; ++o)
        for (int64_t t = 0; t < taps; ++t) {
          float& v = data[(i * per_group + o) * taps + t];
          v = static_cast<float>(v * affine.scale[i / in_group * per_group + o]);
        }
  } else {
    const int64_t row = w.size() / channels;
    for (int64_t c = 0; c < channels; ++c, data += row) {
      const double scale = affine.scale[c];
      for (int64_t i = 0; i < row; ++i) data[i] = static_cast<float>(data[i] * scale);
    }
  }
  Tensor b = Tensor::allocate(DataType::float32, Shape{channels});
  const bool has_bias = conv.inputs.size() > 2 && conv.inputs[2] != kNone;
  const float* bias = has_bias ? graph.constant(conv.inputs[2])->as<float>() : nullptr;
  for (int64_t c = 0; c < channels; ++c)
    b.as<float>()[c] = static_cast<float>((bias ? bias[c] : 0) * affine.scale[c] + affine.shift[c]);
  conv.inputs.resize(3, kNone);
  const std::string stem = graph.values[conv.inputs[1]].name;
  conv.inputs[1] = graph.add_constant(stem + "_scaled", std::move(w));
  conv.inputs[2] = graph.add_constant(stem + "_shift", std::move(b));
}

}  // namespace

/// BatchNormalization and per-channel Add, Sub, Mul and Div by constants go into the weights and bias of the convolution
/// whose only reader they are.
int fold_conv_scale(Graph& graph, const PassContext&) {
  int folded = 0;
  auto readers = graph.consumers();
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed || node.outputs[0] == kNone || !(node.is("Conv") || node.is("ConvTranspose"))) continue;
    // What follows the convolution now may be followed by more.
    while (true) {
      const ValueId y = graph.nodes[id].outputs[0];
      if (!read_once(graph, readers, y)) break;
      const NodeId reader = readers[y][0];
      const Node& conv = graph.nodes[id];
      const Node& next = graph.nodes[reader];
      if (!next.domain.empty() || next.outputs.empty() || next.outputs[0] == kNone) break;
      const Tensor* w = graph.constant(conv.inputs[1]);
      if (!w || w->type != DataType::float32 || !w->data || w->shape.rank() < 3) break;
      int64_t channels = w->shape[0];
      if (conv.op == "ConvTranspose") {
        auto* group = graph.attribute<int64_t>(conv, "group");
        channels = w->shape[1] * (group ? *group : 1);
      }
      if (conv.inputs.size() > 2 && conv.inputs[2] != kNone && !floats(graph, conv.inputs[2], channels)) break;
      Affine affine;
      const bool known = next.op == "BatchNormalization"
                             ? next.inputs[0] == y && batch_norm(graph, next, channels, affine)
                             : element_wise(graph, next, y, channels, w->shape.rank(), affine);
      if (!known || !finite(affine)) break;
      const Tensor weights = *w;
      std::vector<NodeId> following = readers[next.outputs[0]];
      if (!bypass(graph, reader, y)) break;
      apply(graph, graph.nodes[id], weights, channels, affine);
      readers.resize(graph.values.size());
      readers[graph.nodes[id].outputs[0]] = std::move(following);
      ++folded;
    }
  }
  return folded;
}

}  // namespace epona
