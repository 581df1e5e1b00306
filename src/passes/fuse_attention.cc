#include <array>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

/// Finds MatMul(Softmax(MatMul(Q, K^T) scaled, plus a mask), V) on tensors of rank 4 and makes it one Attention node of
/// domain "epona", which reads and writes {batch, rows, heads, columns} as well: transpositions around it vanish.
class Fuser : PatternMatcher {
 public:
  using PatternMatcher::PatternMatcher;
  int run() {
    return fuse_each("MatMul", [this](NodeId id) { return fuse(id); });
  }

 private:
  using Perm = std::array<int64_t, 4>;

  bool is_float4(ValueId id) const {
    const Type& type = graph_.values[id].type;
    return type.is_tensor() && type.elem == DataType::float32 && type.shape && type.shape->size() == 4;
  }

  /// A constant factor of one element; it may not add dims to a tensor of rank 4.
  std::optional<double> factor(ValueId id) const {
    const Tensor* tensor = graph_.constant(id);
    if (!tensor || tensor->type != DataType::float32 || tensor->shape.rank() > 4) return std::nullopt;
    return constant_scalar(graph_, id);
  }

  bool last_axis(const Node& softmax) const {
    const int64_t* axis = graph_.attribute<int64_t>(softmax, "axis");
    const int64_t value = axis ? *axis : softmax.opset < 13 ? 1 : -1;
    return value == -1 || value == 3;
  }

  bool has_perm(const Node& transpose, const Perm& perm) const {
    const auto* own = graph_.attribute<std::vector<int64_t>>(transpose, "perm");
    return own && own->size() == 4 && std::equal(perm.begin(), perm.end(), own->begin());
  }

  /// The operand {batch, heads, rows, columns}: `id`, or what a Transpose made it from.
  struct Operand {
    ValueId value;
    bool rows_first;
  };
  Operand operand(ValueId id) const {
    const Node* transpose = producer_of(graph_, id, "Transpose");
    if (transpose && has_perm(*transpose, {0, 2, 1, 3})) return {transpose->inputs[0], true};
    return {id, false};
  }

  /// The keys behind {batch, heads, columns, rows}; nothing when they are not transposed from one of the two layouts.
  std::optional<Operand> keys(ValueId id) const {
    const Node* transpose = producer_of(graph_, id, "Transpose");
    if (!transpose) return std::nullopt;
    if (has_perm(*transpose, {0, 2, 3, 1})) return Operand{transpose->inputs[0], true};
    if (has_perm(*transpose, {0, 1, 3, 2})) return operand(transpose->inputs[0]);
    return std::nullopt;
  }

  bool fuse(NodeId id) {
    const Node& product = graph_.nodes[id];
    const Node* softmax = inner(product.inputs[0], "Softmax");
    if (!softmax || !last_axis(*softmax) || !is_float4(product.inputs[0]) || !is_float4(product.inputs[1]))
      return false;
    // Softmax's input: scores, scaled scores, or one of them plus a mask on either side.
    double scale = 1;
    ValueId mask = kNone;
    const Node* scores = scaled(softmax->inputs[0], scale);
    if (!scores) {
      const Node* sum = inner(softmax->inputs[0], "Add");
      if (!sum) return false;
      for (int side = 0; side < 2 && !scores; ++side) {
        scores = scaled(sum->inputs[side], scale);
        mask = sum->inputs[1 - side];
      }
      if (!scores || !is_mask(mask)) return false;
    }
    const auto k = keys(scores->inputs[1]);
    if (!k || !is_float4(scores->inputs[0]) || !is_float4(scores->inputs[1])) return false;
    const Operand q = operand(scores->inputs[0]), v = operand(product.inputs[1]);

    Node node;
    node.op = "Attention";
    node.domain = "epona";
    node.name = product.name;
    node.inputs = {q.value, k->value, v.value};
    if (mask != kNone) node.inputs.push_back(mask);
    node.outputs = product.outputs;
    node.attributes["scale"] = static_cast<float>(scale);
    node.attributes["q_rows_first"] = int64_t{q.rows_first};
    node.attributes["k_rows_first"] = int64_t{k->rows_first};
    node.attributes["v_rows_first"] = int64_t{v.rows_first};
    // A Transpose that is the only reader becomes the layout of the result.
    NodeId place = id;
    const ValueId result = product.outputs[0];
    if (read_once(graph_, readers_, result)) {
      const NodeId reader = readers_[result][0];
      const Node& transpose = graph_.nodes[reader];
      if (transpose.is("Transpose") && has_perm(transpose, {0, 2, 1, 3})) {
        node.attributes["out_rows_first"] = int64_t{1};
        node.outputs = transpose.outputs;
        place = reader;
      }
    }
    if (place != id) graph_.remove_node(id);
    graph_.nodes[place] = std::move(node);
    graph_.values[graph_.nodes[place].outputs[0]].producer = place;
    graph_.values[graph_.nodes[place].outputs[0]].producer_slot = 0;
    return true;
  }

  bool is_mask(ValueId id) const {
    const Type& type = graph_.values[id].type;
    return type.is_tensor() && type.elem == DataType::float32 && type.shape && type.shape->size() <= 4;
  }

  /// The MatMul whose result, times a constant, is `id`.
  const Node* scaled(ValueId id, double& scale) const {
    if (const Node* product = inner(id, "MatMul")) {
      scale = 1;
      return product;
    }
    if (const Node* div = inner(id, "Div")) {
      const auto divisor = factor(div->inputs[1]);
      const Node* product = inner(div->inputs[0], "MatMul");
      if (!divisor || *divisor == 0 || !product) return nullptr;
      scale = 1 / *divisor;
      return product;
    }
    if (const Node* mul = inner(id, "Mul")) {
      for (int side = 0; side < 2; ++side) {
        const auto value = factor(mul->inputs[1 - side]);
        const Node* product = inner(mul->inputs[side], "MatMul");
        if (!value || !product) continue;
        scale = *value;
        return product;
      }
    }
    return nullptr;
  }
};

}  // namespace

int fuse_attention(Graph& graph, const PassContext&) {
  const int fused = Fuser(graph).run();
  if (fused > 0) graph.sort();
  return fused;
}

}  // namespace epona
