#include <algorithm>
#include <string>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

/// Rewrites operators on 8-bit values as DequantizeLinear, the float operator, QuantizeLinear. The pairs between two such
/// operators then become one function (fuse_fake_quantization), and the float kernels do the work. What an operator of
/// this kind means is defined by exactly this formula; only the rounding of sums differs, within half a step.
class Expander {
 public:
  explicit Expander(Graph& graph) : graph_(graph) {
    auto it = graph.opsets.find("");
    opset_ = it == graph.opsets.end() ? 13 : std::max(13, it->second);  // scales per channel came with 13
  }

  int run() {
    int rewritten = 0;
    const auto count = static_cast<NodeId>(graph_.nodes.size());
    for (NodeId id = 0; id < count; ++id) {
      if (graph_.nodes[id].removed) continue;
      const Node node = graph_.nodes[id];
      if (node.is("QLinearConv"))
        rewritten += conv(id, node);
      else if (node.is("QLinearAdd", "com.microsoft") || node.is("QLinearMul", "com.microsoft"))
        rewritten += binary(id, node);
      else if (node.is("QLinearGlobalAveragePool", "com.microsoft"))
        rewritten += global_pool(id, node);
      else if (node.is("QGemm", "com.microsoft"))
        rewritten += gemm(id, node);
    }
    if (rewritten) graph_.sort();
    return rewritten;
  }

 private:
  ValueId in(const Node& node, size_t i) const { return i < node.inputs.size() ? node.inputs[i] : kNone; }
  bool eight_bit(ValueId id) const {
    const Type& type = graph_.values[id].type;
    return type.is_tensor() && (type.elem == DataType::uint8 || type.elem == DataType::int8);
  }

  ValueId float_like(ValueId like, const std::string& suffix) {
    Type type = graph_.values[like].type;
    type.elem = DataType::float32;
    return graph_.add_value(graph_.unique_name(graph_.values[like].name + suffix), type);
  }

  Node make(const Node& like, const char* op, std::vector<ValueId> inputs, ValueId output) {
    Node node;
    node.op = op;
    node.name = like.name + "/" + op;
    node.opset = opset_;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    return node;
  }

  ValueId dequantize(const Node& like, ValueId x, ValueId scale, ValueId zero_point, int64_t axis = 1) {
    ValueId y = float_like(x, "_float");
    Node node = make(like, "DequantizeLinear", {x, scale}, y);
    if (zero_point != kNone) node.inputs.push_back(zero_point);
    const Tensor* scales = graph_.constant(scale);
    if (scales && scales->size() > 1) node.attributes["axis"] = axis;
    // One scale in a tensor of one element is a scale per tensor.
    graph_.add_node(std::move(node));
    return y;
  }

  /// Takes the place of node `id`: quantises `y` into the node's output.
  void finish(NodeId id, const Node& like, ValueId y, ValueId scale, ValueId zero_point) {
    Node node = make(like, "QuantizeLinear", {y, scale}, like.outputs[0]);
    if (zero_point != kNone) node.inputs.push_back(zero_point);
    graph_.remove_node(id);
    graph_.add_node(std::move(node));
  }

  /// An int32 bias whose step is x_scale * w_scale[channel].
  ValueId float_bias(ValueId bias, ValueId x_scale, ValueId w_scale) {
    const Tensor *b = graph_.constant(bias), *xs = graph_.constant(x_scale), *ws = graph_.constant(w_scale);
    if (!b || !xs || !ws || b->type != DataType::int32) return kNone;
    Tensor real = Tensor::allocate(DataType::float32, b->shape);
    for (int64_t i = 0; i < b->size(); ++i)
      real.as<float>()[i] = static_cast<float>(static_cast<double>(b->as<int32_t>()[i]) * *xs->as<float>() *
                                               ws->as<float>()[ws->size() == 1 ? 0 : i]);
    return graph_.add_constant(graph_.values[bias].name + "_float", std::move(real));
  }

  bool scales_known(std::initializer_list<ValueId> ids) const {
    for (ValueId id : ids) {
      const Tensor* scale = id == kNone ? nullptr : graph_.constant(id);
      if (!scale || scale->type != DataType::float32) return false;
    }
    return true;
  }

  bool conv(NodeId id, const Node& node) {
    ValueId bias = in(node, 8), real_bias = kNone;
    if (!eight_bit(node.inputs[0]) || !graph_.constant(node.inputs[3]) ||
        !scales_known({node.inputs[1], node.inputs[4], node.inputs[6]}))
      return false;
    if (bias != kNone && (real_bias = float_bias(bias, node.inputs[1], node.inputs[4])) == kNone) return false;
    ValueId x = dequantize(node, node.inputs[0], node.inputs[1], node.inputs[2]);
    ValueId w = dequantize(node, node.inputs[3], node.inputs[4], node.inputs[5], 0);
    ValueId y = float_like(node.outputs[0], "_float");
    Node conv = make(node, "Conv", {x, w}, y);
    if (real_bias != kNone) conv.inputs.push_back(real_bias);
    conv.attributes = node.attributes;
    graph_.add_node(std::move(conv));
    finish(id, node, y, node.inputs[6], node.inputs[7]);
    return true;
  }

  bool binary(NodeId id, const Node& node) {
    if (!eight_bit(node.inputs[0]) || !eight_bit(node.inputs[3]) ||
        !scales_known({node.inputs[1], node.inputs[4], node.inputs[6]}))
      return false;
    ValueId a = dequantize(node, node.inputs[0], node.inputs[1], node.inputs[2]);
    ValueId b = dequantize(node, node.inputs[3], node.inputs[4], node.inputs[5]);
    ValueId y = float_like(node.outputs[0], "_float");
    graph_.add_node(make(node, node.op == "QLinearAdd" ? "Add" : "Mul", {a, b}, y));
    finish(id, node, y, node.inputs[6], in(node, 7));
    return true;
  }

  bool global_pool(NodeId id, const Node& node) {
    auto* channels_last = graph_.attribute<int64_t>(node, "channels_last");
    if ((channels_last && *channels_last) || !scales_known({node.inputs[1], node.inputs[3]})) return false;
    ValueId x = dequantize(node, node.inputs[0], node.inputs[1], node.inputs[2]);
    ValueId y = float_like(node.outputs[0], "_float");
    graph_.add_node(make(node, "GlobalAveragePool", {x}, y));
    finish(id, node, y, node.inputs[3], in(node, 4));
    return true;
  }

  bool gemm(NodeId id, const Node& node) {
    auto* trans_a = graph_.attribute<int64_t>(node, "transA");
    auto* trans_b = graph_.attribute<int64_t>(node, "transB");
    auto* alpha = graph_.attribute<float>(node, "alpha");
    ValueId bias = in(node, 6), real_bias = kNone, y_scale = in(node, 7);
    if ((trans_a && *trans_a) || (alpha && *alpha != 1.0f) || !graph_.constant(node.inputs[3]) ||
        !scales_known({node.inputs[1], node.inputs[4]}) || (y_scale != kNone && !scales_known({y_scale})))
      return false;
    if (bias != kNone && (real_bias = float_bias(bias, node.inputs[1], node.inputs[4])) == kNone) return false;
    const bool transposed = trans_b && *trans_b;
    ValueId a = dequantize(node, node.inputs[0], node.inputs[1], node.inputs[2]);
    ValueId b = dequantize(node, node.inputs[3], node.inputs[4], node.inputs[5], transposed ? 0 : 1);
    ValueId y = y_scale == kNone ? node.outputs[0] : float_like(node.outputs[0], "_float");
    Node product = make(node, "Gemm", {a, b}, y);
    if (real_bias != kNone) product.inputs.push_back(real_bias);
    if (transposed) product.attributes["transB"] = int64_t{1};
    if (y_scale == kNone) {
      graph_.remove_node(id);
      graph_.add_node(std::move(product));
    } else {
      graph_.add_node(std::move(product));
      finish(id, node, y, y_scale, in(node, 8));
    }
    return true;
  }

  Graph& graph_;
  int opset_;
};

}  // namespace

int expand_quantized_operators(Graph& graph, const PassContext&) { return Expander(graph).run(); }

}  // namespace epona
