#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

/// Finds layer and RMS normalisation over the last dim, spelled out:
///   d = x - mean(x); d / sqrt(mean(d^2) + epsilon) * scale [+ bias]
///   x * (1 / sqrt(mean(x^2) + epsilon)) * scale
class Fuser : PatternMatcher {
 public:
  using PatternMatcher::PatternMatcher;
  int run() {
    return fuse_each("Mul", [this](NodeId id) { return fuse(id); });
  }

 private:
  const std::vector<Dim>* dims(ValueId id) const {
    const Type& type = graph_.values[id].type;
    return type.is_tensor() && type.elem == DataType::float32 && type.shape && !type.shape->empty() ? &*type.shape
                                                                                                    : nullptr;
  }

  /// A constant with one number for each element of the last dim of x: no more dims, and no broadcasting of x to it.
  bool is_row(ValueId id, ValueId x) const {
    const Tensor* tensor = id == kNone ? nullptr : graph_.constant(id);
    const auto* shape = dims(x);
    return tensor && shape && tensor->type == DataType::float32 && tensor->shape.rank() == 1 &&
           shape->back().value == tensor->shape[0];
  }

  /// x, when `id` is its mean over the last dim, which is kept.
  ValueId mean_of(ValueId id) const {
    const Node* mean = producer_of(graph_, id, "ReduceMean");
    if (!mean) return kNone;
    const auto* shape = dims(mean->inputs[0]);
    const int64_t* keep = graph_.attribute<int64_t>(*mean, "keepdims");
    if (!shape || (keep && *keep == 0)) return kNone;
    std::vector<int64_t> axes;
    if (const auto* attribute = graph_.attribute<std::vector<int64_t>>(*mean, "axes")) axes = *attribute;
    if (mean->inputs.size() > 1 && mean->inputs[1] != kNone) {
      const Tensor* input = graph_.constant(mean->inputs[1]);
      if (!input) return kNone;
      axes = input->ints();
    }
    const int64_t last = static_cast<int64_t>(shape->size()) - 1;
    return axes.size() == 1 && (axes[0] == -1 || axes[0] == last) ? mean->inputs[0] : kNone;
  }

  bool is_square_of(ValueId id, ValueId x) const {
    if (const Node* pow = producer_of(graph_, id, "Pow")) {
      const Tensor* exponent = graph_.constant(pow->inputs[1]);
      return pow->inputs[0] == x && exponent && exponent->shape.rank() <= 1 &&
             constant_scalar(graph_, pow->inputs[1]) == 2.0;
    }
    const Node* mul = producer_of(graph_, id, "Mul");
    return mul && mul->inputs[0] == x && mul->inputs[1] == x;
  }

  /// Whether `id` is sqrt(mean(d^2) + epsilon).
  bool is_deviation(ValueId id, ValueId d, float& epsilon) const {
    const Node* root = producer_of(graph_, id, "Sqrt");
    const Node* sum = root ? producer_of(graph_, root->inputs[0], "Add") : nullptr;
    for (int side = 0; sum && side < 2; ++side) {
      const Tensor* constant = graph_.constant(sum->inputs[side]);
      const auto value = constant_scalar(graph_, sum->inputs[side]);
      if (!constant || !value || constant->shape.rank() > 1) continue;
      const ValueId square = mean_of(sum->inputs[1 - side]);
      epsilon = static_cast<float>(*value);
      return square != kNone && is_square_of(square, d);
    }
    return false;
  }

  /// d, when `id` is d / deviation(d), in one of its spellings.
  ValueId normalized(ValueId id, float& epsilon) const {
    if (const Node* div = producer_of(graph_, id, "Div"))
      return is_deviation(div->inputs[1], div->inputs[0], epsilon) ? div->inputs[0] : kNone;
    const Node* mul = producer_of(graph_, id, "Mul");
    for (int side = 0; mul && side < 2; ++side) {
      const ValueId d = mul->inputs[side], inverse = mul->inputs[1 - side];
      if (const Node* reciprocal = producer_of(graph_, inverse, "Reciprocal"))
        if (is_deviation(reciprocal->inputs[0], d, epsilon)) return d;
      const Node* div = producer_of(graph_, inverse, "Div");
      const Tensor* one = div ? graph_.constant(div->inputs[0]) : nullptr;
      if (one && one->shape.rank() <= 1 && constant_scalar(graph_, div->inputs[0]) == 1.0 &&
          is_deviation(div->inputs[1], d, epsilon))
        return d;
    }
    return kNone;
  }

  bool fuse(NodeId id) {
    const Node& scaled = graph_.nodes[id];
    for (int side = 0; side < 2; ++side) {
      const ValueId scale = scaled.inputs[side];
      float epsilon = 0;
      const ValueId d = graph_.constant(scale) ? normalized(scaled.inputs[1 - side], epsilon) : kNone;
      if (d == kNone || !is_row(scale, d)) continue;
      const Node* difference = producer_of(graph_, d, "Sub");
      const bool centred = difference && mean_of(difference->inputs[1]) == difference->inputs[0];
      return replace(id, centred ? difference->inputs[0] : d, scale, epsilon, centred);
    }
    return false;
  }

  bool replace(NodeId id, ValueId x, ValueId scale, float epsilon, bool centred) {
    Node node;
    node.op = centred ? "LayerNormalization" : "RMSNormalization";
    node.opset = centred ? 17 : 23;
    node.name = graph_.nodes[id].name;
    node.inputs = {x, scale};
    node.outputs = graph_.nodes[id].outputs;
    node.attributes["axis"] = int64_t{-1};
    node.attributes["epsilon"] = epsilon;
    NodeId place = id;
    const ValueId result = node.outputs[0];
    if (centred && read_once(graph_, readers_, result)) {
      const NodeId reader = readers_[result][0];
      const Node& sum = graph_.nodes[reader];
      for (int side = 0; sum.is("Add") && side < 2; ++side) {
        if (sum.inputs[side] != result || !is_row(sum.inputs[1 - side], x)) continue;
        node.inputs.push_back(sum.inputs[1 - side]);
        node.outputs = sum.outputs;
        place = reader;
        break;
      }
    }
    if (place != id) graph_.remove_node(id);
    graph_.nodes[place] = std::move(node);
    return true;
  }
};

}  // namespace

int fuse_layer_norm(Graph& graph, const PassContext&) { return Fuser(graph).run(); }

}  // namespace epona
