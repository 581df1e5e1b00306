#include <algorithm>

#include "ops/evaluate.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

// A folded result may be this large even if the inputs are small (bytes); beyond it, four times its inputs.
constexpr size_t kSmall = 64 * 1024;
constexpr size_t kLimit = size_t{1} << 30;

int fold(Graph& graph, const PassContext& context, bool with_dequantize) {
  int folded = 0;
  std::vector<Tensor> results;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed || node.inputs.empty()) continue;
    // Quantised weights stay quantised until the passes that use them have run.
    if (!with_dequantize && node.op == "DequantizeLinear") continue;
    // fuse_weight_transpose or a compiling provider may do without the copy.
    if (context.plain_only && transposed_weight(graph, node) != kNone) continue;
    size_t input_bytes = 0;
    bool constant = true;
    for (ValueId input : node.inputs) {
      if (input == kNone) continue;
      const Tensor* tensor = graph.constant(input);
      constant &= tensor != nullptr;
      if (tensor) input_bytes += tensor->bytes();
    }
    if (!constant) continue;
    stop_if_cancelled(context.cancel);
    size_t limit = std::min(kLimit, std::max(kSmall, 4 * input_bytes));
    if (!evaluate_constant_node(graph, node, limit, results)) continue;
    std::vector<ValueId> outputs = node.outputs;
    graph.remove_node(id);
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (outputs[o] == kNone) continue;
      Value& value = graph.values[outputs[o]];
      value.type = Type::tensor(results[o].type, results[o].shape);
      value.constant = std::move(results[o]);
    }
    ++folded;
  }
  return folded;
}

}  // namespace

int constant_folding(Graph& graph, const PassContext& context) { return fold(graph, context, false); }
int dequantized_weight_folding(Graph& graph, const PassContext& context) { return fold(graph, context, true); }

}  // namespace epona
