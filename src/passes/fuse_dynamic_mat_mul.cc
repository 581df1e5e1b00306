#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

class Fuser : PatternMatcher {
 public:
  using PatternMatcher::PatternMatcher;
  int run() {
    return fuse_each("MatMulInteger", [this](NodeId id) { return fuse(id); });
  }

 private:
  /// A float constant with one element, or one for each of n columns, that adds no dim to an output of rank 2 or more.
  bool per_column(ValueId id, int64_t n, bool scalar_too) const {
    const Tensor* t = id == kNone ? nullptr : graph_.constant(id);
    if (!t || t->type != DataType::float32 || t->shape.rank() > 1) return false;
    return (t->shape.rank() == 1 && t->size() == n) || (scalar_too && t->size() == 1);
  }

  bool is_float_cast(NodeId id) const {
    const int64_t* to = graph_.attribute<int64_t>(graph_.nodes[id], "to");
    return to && *to == static_cast<int64_t>(DataType::float32);
  }

  bool fuse(NodeId id) {
    const Node& product = graph_.nodes[id];
    const Tensor* b = graph_.constant(product.inputs[1]);
    if (!b || b->shape.rank() != 2) return false;
    const int64_t n = b->shape[1];
    const auto& a_type = graph_.values[product.inputs[0]].type.shape;
    if (!a_type || a_type->size() < 2) return false;
    const NodeId cast = only_reader(product.outputs[0], "Cast");
    if (cast == kNone || !is_float_cast(cast)) return false;
    const NodeId mul = only_reader(graph_.nodes[cast].outputs[0], "Mul");
    if (mul == kNone) return false;
    const ValueId factor = other_input(graph_.nodes[mul], graph_.nodes[cast].outputs[0]);
    const Node* scales = producer_of(graph_, factor, "Mul");
    if (!scales) return false;
    for (int side = 0; side < 2; ++side) {
      const ValueId a_scale = scales->inputs[side], b_scale = scales->inputs[1 - side];
      const Node* quantize = producer_of(graph_, a_scale, "DynamicQuantizeLinear");
      // Its scale is a scalar.
      if (!quantize || quantize->outputs.size() < 2 || quantize->outputs[1] != a_scale || !per_column(b_scale, n, true))
        continue;
      NodeId last = mul;
      ValueId bias = kNone;
      if (const NodeId add = only_reader(graph_.nodes[mul].outputs[0], "Add"); add != kNone) {
        const ValueId addend = other_input(graph_.nodes[add], graph_.nodes[mul].outputs[0]);
        if (per_column(addend, n, false)) {
          bias = addend;
          last = add;
        }
      }
      const auto zero = [&](size_t i) { return product.inputs.size() > i ? product.inputs[i] : kNone; };
      Node fused;
      fused.name = product.name;
      fused.op = "MatMulIntegerToFloat";
      fused.domain = "com.microsoft";
      fused.inputs = {product.inputs[0], product.inputs[1], a_scale, b_scale, zero(2), zero(3), bias};
      fused.outputs = graph_.nodes[last].outputs;
      graph_.remove_node(id);
      graph_.remove_node(cast);
      if (last != mul) graph_.remove_node(mul);
      graph_.nodes[last] = std::move(fused);
      return true;
    }
    return false;
  }
};

}  // namespace

/// The product of a dynamically quantised A with constant weights, cast to float and scaled, maybe with a bias, becomes
/// one node (com.microsoft's MatMulIntegerToFloat).
int fuse_dynamic_mat_mul(Graph& graph, const PassContext&) { return Fuser(graph).run(); }

}  // namespace epona
