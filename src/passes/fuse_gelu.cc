#include <cmath>

#include "passes/activation_attribute.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

/// Finds 0.5 x (1 + erf(x / sqrt 2)) and 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the factors in any order.
class Fuser : PatternMatcher {
 public:
  using PatternMatcher::PatternMatcher;
  int run() {
    return fuse_each("Mul", [this](NodeId id) { return fuse(id); });
  }

 private:
  /// Whether a constant is `expected` and cannot add a dim to a tensor of rank 1 or more.
  bool is_number(ValueId id, double expected) const {
    const Tensor* tensor = graph_.constant(id);
    const auto value = constant_scalar(graph_, id);
    return tensor && value && tensor->shape.rank() <= 1 && std::abs(*value / expected - 1) < 1e-5;
  }

  /// The other operand of an Add or Mul with a constant.
  ValueId beside(const Node* node, double constant) const {
    if (!node) return kNone;
    for (int side = 0; side < 2; ++side)
      if (is_number(node->inputs[side], constant)) return node->inputs[1 - side];
    return kNone;
  }

  bool fuse(NodeId id) {
    const Node& last = graph_.nodes[id];
    const Type& type = graph_.values[last.outputs[0]].type;
    if (!type.is_tensor() || type.elem != DataType::float32 || !type.shape || type.shape->empty()) return false;
    for (int side = 0; side < 2; ++side) {
      const Node* product = inner(last.inputs[side], "Mul");
      if (!product) continue;
      const ValueId factors[3] = {last.inputs[1 - side], product->inputs[0], product->inputs[1]};
      for (int half = 0; half < 3; ++half) {
        if (!is_number(factors[half], 0.5)) continue;
        for (int k = 1; k < 3; ++k) {
          const ValueId x = factors[(half + k) % 3], gate = factors[(half + 3 - k) % 3];
          if (graph_.values[x].type.is_tensor() && graph_.values[x].type.shape &&
              graph_.values[x].type.shape->size() == type.shape->size())
            if (const auto function = gelu_of(gate, x)) return replace(id, x, *function);
        }
      }
    }
    return false;
  }

  /// gelu when `gate` is 1 + erf(x / sqrt 2), gelu_tanh when it is 1 + tanh(...).
  std::optional<Activation> gelu_of(ValueId gate, ValueId x) const {
    const ValueId inside = beside(inner(gate, "Add"), 1);
    if (inside == kNone) return std::nullopt;
    if (const Node* erf = inner(inside, "Erf")) {
      const Node* div = inner(erf->inputs[0], "Div");
      if (div && div->inputs[0] == x && is_number(div->inputs[1], std::sqrt(2.0))) return Activation::gelu();
      if (beside(inner(erf->inputs[0], "Mul"), std::sqrt(0.5)) == x) return Activation::gelu();
    }
    if (const Node* tanh = inner(inside, "Tanh")) {
      const ValueId sum = beside(inner(tanh->inputs[0], "Mul"), std::sqrt(2 / M_PI));
      const Node* add = sum == kNone ? nullptr : inner(sum, "Add");
      for (int side = 0; add && side < 2; ++side)
        if (add->inputs[side] == x && is_cubic(add->inputs[1 - side], x)) return Activation::gelu_tanh();
    }
    return std::nullopt;
  }

  /// 0.044715 x^3
  bool is_cubic(ValueId id, ValueId x) const {
    const ValueId cube = beside(inner(id, "Mul"), 0.044715);
    if (cube == kNone) return false;
    if (const Node* pow = inner(cube, "Pow")) return pow->inputs[0] == x && is_number(pow->inputs[1], 3);
    const Node* product = inner(cube, "Mul");
    for (int side = 0; product && side < 2; ++side) {
      const Node* square = inner(product->inputs[1 - side], "Mul");
      if (product->inputs[side] == x && square && square->inputs[0] == x && square->inputs[1] == x) return true;
    }
    return false;
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
};

}  // namespace

int fuse_gelu(Graph& graph, const PassContext&) { return Fuser(graph).run(); }

}  // namespace epona
