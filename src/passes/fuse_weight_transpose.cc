#include <algorithm>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

// A smaller copy costs nothing, and the node stays a plain MatMul.
constexpr size_t kWorthIt = 256 * 1024;

/// Whether the value is B of a MatMul of floats and nothing else.
bool is_right_operand(const Node& node, ValueId value) {
  return node.is("MatMul") && node.inputs[1] == value && node.inputs[0] != value && node.captures.empty();
}

}  // namespace

ValueId transposed_weight(const Graph& graph, const Node& node) {
  if (node.removed || !node.is("Transpose") || node.outputs[0] == kNone) return kNone;
  const Tensor* weight = graph.constant(node.inputs[0]);
  if (!weight || weight->type != DataType::float32 || weight->shape.rank() != 2 || weight->bytes() < kWorthIt)
    return kNone;
  const auto* perm = graph.attribute<std::vector<int64_t>>(node, "perm");
  return !perm || *perm == std::vector<int64_t>{1, 0} ? node.inputs[0] : kNone;
}

/// MatMul(x, Transpose(W)) becomes FusedMatMul(x, W) with transB: W is packed from where it lies instead of from a copy,
/// and an embedding that is also the last layer's weight is held once.
int fuse_weight_transpose(Graph& graph, const PassContext&) {
  const auto readers = graph.consumers();
  int fused = 0;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const ValueId weight = transposed_weight(graph, graph.nodes[id]);
    if (weight == kNone) continue;
    const ValueId copy = graph.nodes[id].outputs[0];
    if (graph.is_output(copy) || readers[copy].empty() ||
        !std::all_of(readers[copy].begin(), readers[copy].end(),
                     [&](NodeId reader) { return is_right_operand(graph.nodes[reader], copy); }))
      continue;
    for (NodeId reader : readers[copy]) {
      Node& product = graph.nodes[reader];
      product.op = "FusedMatMul";
      product.domain = "com.microsoft";
      product.opset = 1;
      product.inputs[1] = weight;
      product.attributes["transB"] = int64_t{1};
    }
    graph.remove_node(id);
    ++fused;
  }
  if (fused) graph.opsets.emplace("com.microsoft", 1);
  return fused;
}

}  // namespace epona
