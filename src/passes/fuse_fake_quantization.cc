#include "passes/activation_attribute.h"
#include "passes/passes.h"
#include "passes/quantization.h"
#include "passes/rewrite.h"

namespace epona {
/// QuantizeLinear whose only readers are DequantizeLinear nodes with the same scale and zero point: one element-wise
/// function (Activation fake_quant8) that gives exactly what the pair gives, and that a convolution can take into its
/// epilogue. The readers must all be such nodes: then nobody sees the 8-bit values.
int fuse_fake_quantization(Graph& graph, const PassContext&) {
  int fused = 0;
  const auto readers = graph.consumers();
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& quantize = graph.nodes[id];
    if (quantize.removed || !quantize.is("QuantizeLinear") || graph.is_output(quantize.outputs[0])) continue;
    const ValueId x = quantize.inputs[0], bits = quantize.outputs[0];
    const Type& type = graph.values[x].type;
    if (!type.is_tensor() || type.elem != DataType::float32 || graph.constant(x)) continue;
    auto q = quantization_of(graph, quantize, graph.values[bits].type);
    if (!q || readers[bits].empty()) continue;
    bool paired = true;
    for (NodeId reader : readers[bits]) {
      const Node& dequantize = graph.nodes[reader];
      paired &= dequantize.is("DequantizeLinear") && dequantize.inputs[0] == bits &&
                !graph.is_output(dequantize.outputs[0]) &&
                quantization_of(graph, dequantize, graph.values[bits].type) == q;
    }
    if (!paired) continue;
    const float lowest = q->type == DataType::uint8 ? 0.0f : -128.0f;
    std::vector<NodeId> pairs = readers[bits];
    Node node;
    node.op = "Activation";
    node.domain = "epona";
    node.name = quantize.name;
    node.inputs = {x};
    node.outputs = {graph.add_value(graph.unique_name(graph.values[x].name + "_fake_quantized"), type)};
    set_activation(node, {ActivationKind::fake_quant8, q->scale, lowest - static_cast<float>(q->zero_point)});
    const ValueId y = node.outputs[0];
    graph.remove_node(id);
    graph.nodes[id] = std::move(node);
    graph.values[y].producer = id;
    for (NodeId pair : pairs) {
      const ValueId old = graph.nodes[pair].outputs[0];
      graph.remove_node(pair);
      graph.replace_uses(old, y);
    }
    ++fused;
  }
  return fused;
}

}  // namespace epona
