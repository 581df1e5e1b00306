#include "providers/cpu/element_step.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/half_block.h"

namespace epona::cpu {
namespace {

float number(const Graph& graph, const Node& node, std::string_view key, float otherwise) {
  const float* value = graph.attribute<float>(node, key);
  return value ? *value : otherwise;
}

bool has_input(const Node& node, size_t i) { return i < node.inputs.size() && node.inputs[i] != kNone; }

/// The one element of a floating constant.
std::optional<float> constant_float(const Graph& graph, ValueId id) {
  const Tensor* tensor = graph.constant(id);
  if (!tensor || tensor->size() != 1) return std::nullopt;
  if (tensor->type == DataType::float32) return *tensor->as<float>();
  if (!is_half(tensor->type)) return std::nullopt;
  float value;
  widen_half(tensor->type, tensor->data, &value, 1);
  return value;
}

std::optional<Activation> clip(const Graph& graph, const Node& node) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  float bounds[2] = {-kInf, kInf};
  if (node.opset < 11) {
    bounds[0] = number(graph, node, "min", -kInf);
    bounds[1] = number(graph, node, "max", kInf);
  } else {
    for (size_t i : {0, 1}) {
      if (!has_input(node, i + 1)) continue;
      const auto bound = constant_float(graph, node.inputs[i + 1]);
      if (!bound) return std::nullopt;
      bounds[i] = *bound;
    }
  }
  return Activation::clip(bounds[0], bounds[1]);
}

std::optional<Activation> gelu(const Graph& graph, const Node& node) {
  const auto* approximate = graph.attribute<std::string>(node, "approximate");
  return approximate && *approximate == "tanh" ? Activation::gelu_tanh() : Activation::gelu();
}

/// x^e for an exponent that is common and cheap.
std::optional<EwOp> power_step(float exponent) {
  if (exponent == 1) return EwOp::copy;
  if (exponent == 2) return EwOp::square;
  if (exponent == 3) return EwOp::cube;
  if (exponent == 0.5f) return EwOp::pow_half;
  if (exponent == -1) return EwOp::reciprocal;
  return std::nullopt;
}

using Names = std::map<std::string_view, EwOp>;

const Names& unary_names() {
  static const Names names = {
      {"Neg", EwOp::neg},   {"Abs", EwOp::abs},     {"Sign", EwOp::sign}, {"Floor", EwOp::floor},
      {"Ceil", EwOp::ceil}, {"Round", EwOp::round}, {"Sqrt", EwOp::sqrt}, {"Reciprocal", EwOp::reciprocal},
      {"Exp", EwOp::exp},   {"Log", EwOp::log},     {"Erf", EwOp::erf},   {"Sin", EwOp::sin},
      {"Cos", EwOp::cos},   {"IsNaN", EwOp::is_nan}};
  return names;
}

const Names& binary_names() {
  static const Names names = {{"Add", EwOp::add},
                              {"Sub", EwOp::sub},
                              {"Mul", EwOp::mul},
                              {"Div", EwOp::div},
                              {"Equal", EwOp::equal},
                              {"Less", EwOp::less},
                              {"LessOrEqual", EwOp::less_equal},
                              {"Greater", EwOp::greater},
                              {"GreaterOrEqual", EwOp::greater_equal},
                              {"PRelu", EwOp::prelu}};
  return names;
}

const Names& variadic_names() {
  static const Names names = {{"Sum", EwOp::add}, {"Max", EwOp::max}, {"Min", EwOp::min}};
  return names;
}

std::vector<int> first_inputs(int count) {
  std::vector<int> inputs(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) inputs[static_cast<size_t>(i)] = i;
  return inputs;
}

}  // namespace

std::optional<Activation> activation_of(const Graph& graph, const Node& node) {
  using K = ActivationKind;
  const auto make = [&](K kind, float a = 0, float b = 0) { return Activation{kind, a, b}; };
  const auto attr = [&](std::string_view key, float otherwise) { return number(graph, node, key, otherwise); };
  if (node.domain == "com.microsoft") {
    if (node.op == "Gelu") return Activation::gelu();
    if (node.op == "FastGelu" && !has_input(node, 1)) return Activation::gelu_tanh();
    if (node.op == "QuickGelu") return Activation::silu(attr("alpha", 1.702f));
    return std::nullopt;
  }
  if (!node.domain.empty()) return std::nullopt;
  if (node.op == "Relu") return Activation::relu();
  if (node.op == "Clip") return clip(graph, node);
  if (node.op == "LeakyRelu") return Activation::leaky_relu(attr("alpha", 0.01f));
  if (node.op == "ThresholdedRelu") return make(K::thresholded_relu, attr("alpha", 1));
  if (node.op == "Elu") return make(K::elu, attr("alpha", 1));
  if (node.op == "Celu") return make(K::celu, attr("alpha", 1));
  if (node.op == "Selu") return make(K::selu, attr("alpha", 1.67326319f), attr("gamma", 1.05070102f));
  if (node.op == "Sigmoid") return Activation::sigmoid();
  if (node.op == "Tanh") return Activation::tanh();
  if (node.op == "Swish") return Activation::silu(attr("alpha", 1));
  if (node.op == "Gelu") return gelu(graph, node);
  if (node.op == "HardSigmoid") return Activation::hard_sigmoid(attr("alpha", 0.2f), attr("beta", 0.5f));
  if (node.op == "HardSwish") return Activation::hard_swish();
  if (node.op == "Softplus") return make(K::softplus);
  if (node.op == "Softsign") return make(K::softsign);
  if (node.op == "Mish") return make(K::mish);
  return std::nullopt;
}

std::optional<ElementSteps> element_steps(const Graph& graph, const Node& node) {
  if (const auto activation = activation_of(graph, node))
    return ElementSteps{{{EwOp::activation, {0, 0, 0}, *activation}}, {0}};
  // The broadcasting of old opsets is known to the portable kernels only.
  if (!node.domain.empty() || (node.opset < 7 && node.inputs.size() > 1)) return std::nullopt;
  if (const auto it = unary_names().find(node.op); it != unary_names().end())
    return ElementSteps{{{it->second, {0, 0, 0}}}, {0}};
  if (const auto it = binary_names().find(node.op); it != binary_names().end()) {
    if (node.inputs.size() != 2) return std::nullopt;
    return ElementSteps{{{it->second, {0, 1, 0}}}, {0, 1}};
  }
  if (node.op == "Where") return ElementSteps{{{EwOp::where, {0, 1, 2}}}, {0, 1, 2}};
  if (node.op == "Pow") {
    if (const auto exponent = constant_float(graph, node.inputs[1]))
      if (const auto op = power_step(*exponent)) return ElementSteps{{{*op, {0, 0, 0}}}, {0}};
    return ElementSteps{{{EwOp::pow, {0, 1, 0}}}, {0, 1}};
  }
  if (const auto it = variadic_names().find(node.op); it != variadic_names().end()) {
    const int count = static_cast<int>(node.inputs.size());
    ElementSteps result{{}, first_inputs(count)};
    if (count == 1) result.steps.push_back({EwOp::copy, {0, 0, 0}});
    for (int i = 1; i < count; ++i) result.steps.push_back({it->second, {i == 1 ? 0 : count + i - 2, i, 0}});
    return result;
  }
  return std::nullopt;
}

}  // namespace epona::cpu
