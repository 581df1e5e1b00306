#include <cmath>

#include "passes/activation_attribute.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), readers_(graph.consumers()) {}

  int run() {
    int fused = 0;
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.removed || !node.domain.empty() || !float_output(node)) continue;
      if (node.op == "Mul") fused += gate(id) || scaled_gate(id);
      if (node.op == "Div") fused += scaled_gate(id);
    }
    return fused;
  }

 private:
  bool float_output(const Node& node) const {
    return !node.outputs.empty() && node.outputs[0] != kNone && graph_.values[node.outputs[0]].type.is_tensor() &&
           graph_.values[node.outputs[0]].type.elem == DataType::float32;
  }

  const Node* inner(ValueId value) const {
    if (value == kNone || graph_.values[value].producer == kNone || !read_once(graph_, readers_, value)) return nullptr;
    return &graph_.nodes[graph_.values[value].producer];
  }

  /// A constant that scales or shifts without changing a shape: of one element, and of rank 0 or 1 (x is an image).
  std::optional<double> scalar(ValueId id) const {
    const Tensor* tensor = id == kNone ? nullptr : graph_.constant(id);
    if (!tensor || tensor->shape.rank() > 1) return std::nullopt;
    return constant_scalar(graph_, id);
  }

  bool replace(NodeId id, ValueId x, const Activation& activation) {
    Node node;
    node.op = "Activation";
    node.domain = "epona";
    node.name = graph_.nodes[id].name;
    node.inputs = {x};
    node.outputs = graph_.nodes[id].outputs;
    set_activation(node, activation);
    graph_.nodes[id] = std::move(node);
    return true;
  }

  /// x * sigmoid(x), x * hard_sigmoid(x), x * tanh(softplus(x)).
  bool gate(NodeId id) {
    const Node& mul = graph_.nodes[id];
    for (int side = 0; side < 2; ++side) {
      const ValueId x = mul.inputs[side];
      const Node* gate = inner(mul.inputs[1 - side]);
      if (!gate) continue;
      auto function = activation_of(graph_, *gate);
      if (!function) continue;
      if (function->kind == ActivationKind::tanh) {
        const Node* softplus = inner(gate->inputs[0]);
        auto first = softplus ? activation_of(graph_, *softplus) : std::nullopt;
        if (first && first->kind == ActivationKind::softplus && softplus->inputs[0] == x)
          return replace(id, x, {ActivationKind::mish, 0, 0});
        continue;
      }
      if (gate->inputs[0] != x) continue;
      if (function->kind == ActivationKind::sigmoid) return replace(id, x, Activation::silu());
      if (function->kind == ActivationKind::hard_sigmoid)
        return replace(id, x, {ActivationKind::hard_swish, function->a, function->b});
    }
    return false;
  }

  /// x * clip(x + 3, 0, 6) / 6 in either order of the product and the division.
  bool scaled_gate(NodeId id) {
    const Node& last = graph_.nodes[id];
    // With x of rank 0 a constant of rank 1 would change the shape.
    const auto& shape = graph_.values[last.outputs[0]].type.shape;
    if (!shape || shape->size() < 2) return false;
    // (x * c) / 6, (x * c) * (1 / 6)
    for (int side = 0; side < (last.op == "Div" ? 1 : 2); ++side) {
      auto factor = scalar(last.inputs[1 - side]);
      const Node* product = inner(last.inputs[side]);
      if (!factor || !product || !product->is("Mul")) continue;
      const double scale = last.op == "Div" ? 1 / *factor : *factor;
      for (int x = 0; x < 2; ++x)
        if (auto f = clipped_sum(product->inputs[1 - x], product->inputs[x], scale))
          return replace(id, product->inputs[x], *f);
    }
    if (last.op == "Div") return false;
    // x * (c / 6), x * (c * (1 / 6))
    for (int side = 0; side < 2; ++side) {
      const Node* scaled = inner(last.inputs[1 - side]);
      if (!scaled || !(scaled->is("Mul") || scaled->is("Div"))) continue;
      for (int c = 0; c < (scaled->op == "Div" ? 1 : 2); ++c) {
        auto factor = scalar(scaled->inputs[1 - c]);
        if (!factor) continue;
        const double scale = scaled->op == "Div" ? 1 / *factor : *factor;
        if (auto f = clipped_sum(scaled->inputs[c], last.inputs[side], scale))
          return replace(id, last.inputs[side], *f);
      }
    }
    return false;
  }

  /// hard_swish when `value` is clip(x + b, 0, 1 / scale).
  std::optional<Activation> clipped_sum(ValueId value, ValueId x, double scale) const {
    const Node* clip = inner(value);
    if (!clip) return std::nullopt;
    auto bounds = activation_of(graph_, *clip);
    if (!bounds || bounds->kind != ActivationKind::clip || bounds->a != 0) return std::nullopt;
    if (std::abs(bounds->b * scale - 1) > 1e-6) return std::nullopt;
    const Node* sum = inner(clip->inputs[0]);
    if (!sum || !sum->is("Add")) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      auto offset = scalar(sum->inputs[1 - side]);
      if (offset && sum->inputs[side] == x)
        return Activation{ActivationKind::hard_swish, static_cast<float>(scale), static_cast<float>(*offset * scale)};
    }
    return std::nullopt;
  }

  Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
};

}  // namespace

/// Element-wise spellings of SiLU, Mish and HardSwish become one node.
int fuse_activation(Graph& graph, const PassContext&) {
  int fused = Fuser(graph).run();
  if (fused > 0) remove_dead_nodes(graph);
  return fused;
}

}  // namespace epona
