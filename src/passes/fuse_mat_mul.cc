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
    // Only nodes that were there at the start: a product is rewritten once.
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      if (!graph_.nodes[id].removed && is_product(graph_.nodes[id])) fused += fuse(id);
    return fused;
  }

 private:
  bool is_float(ValueId value) const {
    return value != kNone && graph_.values[value].type.is_tensor() &&
           graph_.values[value].type.elem == DataType::float32;
  }

  bool is_product(const Node& node) const {
    const bool fused = node.is("FusedMatMul", "com.microsoft");
    if (!node.is("MatMul") && !node.is("Gemm") && !fused) return false;
    if (fused && (int_attribute(node, "transBatchA") || int_attribute(node, "transBatchB"))) return false;
    if (node.is("Gemm") && node.opset < 7) return false;
    return node.inputs.size() >= 2 && is_float(node.inputs[0]) && is_float(node.inputs[1]) && is_float(node.outputs[0]);
  }

  float float_attribute(const Node& node, const char* key) const {
    const float* value = graph_.attribute<float>(node, key);
    return value ? *value : 1.0f;
  }

  bool int_attribute(const Node& node, const char* key) const {
    const int64_t* value = graph_.attribute<int64_t>(node, key);
    return value && *value;
  }

  /// Columns of the output, where B is a constant matrix; 0 otherwise.
  int64_t columns(const Node& node) const {
    const Tensor* b = graph_.constant(node.inputs[1]);
    if (!b || b->shape.rank() != 2) return 0;
    return b->shape[int_attribute(node, "transB") ? 0 : 1];
  }

  /// One value for each column, that adds no dim to an output of that rank.
  bool is_bias(ValueId id, int64_t n, size_t out_rank) const {
    const Tensor* t = graph_.constant(id);
    return t && n > 0 && t->type == DataType::float32 && t->shape.rank() >= 1 && t->size() == n &&
           t->shape.back() == n && static_cast<size_t>(t->shape.rank()) <= out_rank;
  }

  bool same_dims(ValueId a, ValueId b) const {
    const auto &x = graph_.values[a].type.shape, &y = graph_.values[b].type.shape;
    if (!x || !y || x->size() != y->size()) return false;
    for (size_t i = 0; i < x->size(); ++i) {
      const Dim &p = (*x)[i], &q = (*y)[i];
      const bool same = p.known() ? p.value == q.value : !p.symbol.empty() && p.symbol == q.symbol;
      if (!same) return false;
    }
    return true;
  }

  bool fuse(NodeId id) {
    const Node product = graph_.nodes[id];
    const auto& out_type = graph_.values[product.outputs[0]].type.shape;
    const size_t out_rank = out_type ? out_type->size() : 1;
    const int64_t n = columns(product);
    const bool gemm = product.op == "Gemm";
    ValueId bias = kNone, residual = kNone;
    Activation activation;
    bool residual_last = false;
    float beta = 1;
    if (gemm) {
      beta = float_attribute(product, "beta");
      if (product.inputs.size() > 2 && beta != 0) bias = product.inputs[2];
    }
    NodeId last = id;
    std::vector<NodeId> absorbed;
    while (true) {
      const ValueId value = graph_.nodes[last].outputs[0];
      if (!read_once(graph_, readers_, value)) break;
      const NodeId next = readers_[value][0];
      const Node& node = graph_.nodes[next];
      if (node.removed || node.outputs.size() != 1 || !is_float(node.outputs[0])) break;
      if (node.is("Add") && node.inputs[0] != node.inputs[1]) {
        const ValueId other = node.inputs[node.inputs[0] == value ? 1 : 0];
        if (bias == kNone && residual == kNone && !activation && is_bias(other, n, out_rank)) {
          bias = other;
        } else if (residual == kNone && !graph_.constant(other) && is_float(other) && same_dims(other, value)) {
          residual = other;
          residual_last = static_cast<bool>(activation);
        } else {
          break;
        }
      } else if (auto function = activation_of(graph_, node); function && !activation && node.inputs[0] == value) {
        activation = *function;
      } else {
        break;
      }
      absorbed.push_back(last);
      last = next;
    }
    if (last == id) return false;
    Node fused;
    fused.name = product.name;
    fused.op = "FusedMatMul";
    fused.domain = "epona";
    fused.inputs = {product.inputs[0], product.inputs[1], bias, residual};
    fused.outputs = graph_.nodes[last].outputs;
    if (gemm) fused.attributes["matrices_only"] = int64_t{1};
    if (product.op != "MatMul") {
      fused.attributes["alpha"] = float_attribute(product, "alpha");
      for (const char* key : {"transA", "transB"}) {
        if (const int64_t* value = graph_.attribute<int64_t>(product, key)) fused.attributes[key] = *value;
      }
    }
    fused.attributes["beta"] = beta;
    if (residual_last) fused.attributes["residual_last"] = int64_t{1};
    set_activation(fused, activation);
    // The product takes the place of the last node: by then all that it reads has been computed.
    for (NodeId gone : absorbed) graph_.remove_node(gone);
    graph_.nodes[last] = std::move(fused);
    return true;
  }

  Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
};

}  // namespace

/// A product of matrices, the bias added to it, an activation and a residual of the same shape become one node.
int fuse_mat_mul(Graph& graph, const PassContext&) { return Fuser(graph).run(); }

}  // namespace epona
