#include <numeric>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

bool identity_permutation(const Graph& graph, const Node& node) {
  auto* perm = graph.attribute<std::vector<int64_t>>(node, "perm");
  if (!perm) return false;
  for (size_t i = 0; i < perm->size(); ++i)
    if ((*perm)[i] != static_cast<int64_t>(i)) return false;
  return true;
}

/// Dropout does nothing at inference; its mask must be unwanted, and training mode absent or constant false.
bool inert_dropout(const Graph& graph, const Node& node) {
  if (node.outputs.size() > 1 && node.outputs[1] != kNone) return false;
  if (auto* is_test = graph.attribute<int64_t>(node, "is_test"); node.opset < 7 && (!is_test || *is_test == 0))
    return false;
  if (node.inputs.size() < 3 || node.inputs[2] == kNone) return true;
  const Tensor* training = graph.constant(node.inputs[2]);
  return training && training->type == DataType::boolean && training->size() == 1 && !*training->as<bool>();
}

/// Whether output 0 equals input 0, element by element and in type.
bool does_nothing(const Graph& graph, const Node& node) {
  if (!node.domain.empty() || node.inputs.empty() || node.inputs[0] == kNone || node.outputs.empty() ||
      node.outputs[0] == kNone)
    return false;
  if (node.op == "Identity") return true;
  if (node.op == "Dropout") return inert_dropout(graph, node);
  if (node.op == "Transpose") return identity_permutation(graph, node);
  if (node.op == "Cast") {
    const Type &from = graph.values[node.inputs[0]].type, &to = graph.values[node.outputs[0]].type;
    return from.is_tensor() && to.is_tensor() && from.elem == to.elem;
  }
  if (node.op == "Concat" || node.op == "Sum" || node.op == "Mean" || node.op == "Max" || node.op == "Min")
    return node.inputs.size() == 1;
  return false;
}

}  // namespace

int eliminate_identity(Graph& graph, const PassContext&) {
  int removed = 0;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed || !does_nothing(graph, node)) continue;
    // A branch or body that returns one of its inputs keeps its Identity: its output is a value of its own.
    removed += bypass(graph, id, node.inputs[0]);
  }
  return removed;
}

}  // namespace epona
