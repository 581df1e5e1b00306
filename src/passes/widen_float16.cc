#include <algorithm>
#include <array>
#include <string_view>

#include "graph/aligned.h"
#include "kernels/convert.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

// Operators that mean the same in float: computing them there only saves roundings. Sorted, for binary search.
// clang-format off
constexpr std::array<std::string_view, 101> kWidened = {
    "Abs", "Add", "ArgMax", "ArgMin", "Attention", "AveragePool", "BatchNormalization", "BiasGelu", "Cast",
    "Ceil", "Celu", "Clip", "Concat", "ConstantOfShape", "Conv", "ConvTranspose", "Cos", "CumSum",
    "DepthToSpace", "Div", "Dropout", "Einsum", "Elu", "Equal", "Erf", "Exp", "Expand", "FastGelu", "Flatten",
    "Floor", "GRU", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool",
    "GlobalMaxPool", "Greater", "GreaterOrEqual", "GroupNormalization", "HardSigmoid", "HardSwish", "Identity",
    "InstanceNormalization", "IsInf", "IsNaN", "LSTM", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual",
    "Log", "LogSoftmax", "LpNormalization", "MatMul", "Max", "MaxPool", "Mean", "Min", "Mish", "Mul", "Neg",
    "NonZero", "PRelu", "Pad", "Pow", "QuickGelu", "RMSNormalization", "RNN", "Reciprocal", "ReduceL2",
    "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Relu", "Reshape", "Resize", "RotaryEmbedding", "Selu",
    "Shape", "Sigmoid", "Sign", "Sin", "SkipLayerNormalization", "Slice", "Softmax", "Softplus", "SpaceToDepth",
    "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "TopK", "Transpose", "Unsqueeze", "Where"};
// clang-format on
static_assert(std::is_sorted(kWidened.begin(), kWidened.end()));

bool widened(const Node& node) {
  return (node.domain.empty() || node.domain == "com.microsoft") && node.captures.empty() &&
         std::binary_search(kWidened.begin(), kWidened.end(), std::string_view(node.op));
}

Tensor to_float(const Tensor& half) {
  Tensor wide = Tensor::allocate(DataType::float32, half.shape);
  epona::to_float(half.type, aligned(half).data, wide.as<float>(), half.size());
  return wide;
}

/// Both forms of the float16 values of one graph.
class Widener {
 public:
  explicit Widener(Graph& graph) : graph_(graph), wide_(graph.values.size(), kNone) {}

  int run() {
    const auto nodes = static_cast<NodeId>(graph_.nodes.size());
    int count = 0;
    for (NodeId id = 0; id < nodes; ++id) count += !graph_.nodes[id].removed && touches_half(graph_.nodes[id]);
    if (count == 0) return 0;
    std::vector<char> needs_half(graph_.values.size(), 0);
    for (ValueId id : graph_.outputs) needs_half[id] = 1;
    for (NodeId id = 0; id < nodes; ++id) {
      const Node& node = graph_.nodes[id];
      if (node.removed) continue;
      for (ValueId capture : node.captures) needs_half[capture] = 1;
      if (!widens(node))
        for (ValueId input : node.inputs)
          if (input != kNone) needs_half[input] = 1;
    }
    for (NodeId id = 0; id < nodes; ++id)
      if (!graph_.nodes[id].removed && widens(graph_.nodes[id])) widen(id, needs_half);
    graph_.sort();
    return count;
  }

 private:
  bool is_half(ValueId id) const {
    return id != kNone && graph_.values[id].type.is_tensor() && graph_.values[id].type.elem == DataType::float16;
  }
  /// Rows of a constant table are cheaper to widen than the table.
  bool widens(const Node& node) const {
    return widened(node) && !(node.op == "Gather" && graph_.constant(node.inputs[0]));
  }
  bool touches_half(const Node& node) const {
    return widens(node) &&
           (std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return is_half(id); }) ||
            std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) { return is_half(id); }));
  }

  ValueId new_wide_value(ValueId half) {
    Type type = graph_.values[half].type;
    type.elem = DataType::float32;
    return graph_.add_value(graph_.unique_name(graph_.values[half].name + "_float"), type);
  }

  void add_cast(ValueId from, ValueId to, DataType type) {
    Node cast;
    cast.op = "Cast";
    cast.name = graph_.values[to].name + "_cast";
    cast.opset = graph_.opsets.contains("") ? graph_.opsets.find("")->second : 13;
    cast.inputs = {from};
    cast.outputs = {to};
    cast.attributes["to"] = static_cast<int64_t>(type);
    graph_.add_node(std::move(cast));
  }

  /// The float form of a float16 value, made when it is first asked for.
  ValueId wide(ValueId half) {
    if (wide_[half] != kNone) return wide_[half];
    ValueId id;
    if (const Tensor* constant = graph_.constant(half)) {
      id = graph_.add_constant(graph_.values[half].name + "_float", to_float(*constant));
    } else {
      id = new_wide_value(half);
      // Values that widened nodes write get their producer there; all others are cast.
      NodeId producer = graph_.values[half].producer;
      if (producer == kNone || !widens(graph_.nodes[producer])) add_cast(half, id, DataType::float32);
    }
    return wide_[half] = id;
  }

  void widen(NodeId id, const std::vector<char>& needs_half) {
    for (size_t i = 0; i < graph_.nodes[id].inputs.size(); ++i)
      if (ValueId input = graph_.nodes[id].inputs[i]; is_half(input)) {
        ValueId to = wide(input);
        graph_.nodes[id].inputs[i] = to;
      }
    for (size_t o = 0; o < graph_.nodes[id].outputs.size(); ++o) {
      ValueId output = graph_.nodes[id].outputs[o];
      if (!is_half(output)) continue;
      ValueId to = wide(output);
      graph_.nodes[id].outputs[o] = to;
      graph_.values[to].producer = id;
      graph_.values[to].producer_slot = static_cast<int>(o);
      graph_.values[output].producer = kNone;
      if (needs_half[output]) add_cast(to, output, DataType::float16);
    }
    Node& node = graph_.nodes[id];
    if (node.is("Cast") && graph_.attribute<int64_t>(node, "to") &&
        *graph_.attribute<int64_t>(node, "to") == static_cast<int64_t>(DataType::float16))
      node.attributes["to"] = static_cast<int64_t>(DataType::float32);
    if (auto* value = graph_.attribute<Tensor>(node, "value"); value && value->type == DataType::float16)
      node.attributes["value"] = to_float(*value);
  }

  Graph& graph_;
  std::vector<ValueId> wide_;
};

}  // namespace

int widen_float16(Graph& graph, const PassContext&) { return Widener(graph).run(); }

}  // namespace epona
