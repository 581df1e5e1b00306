#include "passes/activation_attribute.h"

#include <iterator>
#include <limits>

namespace epona {
namespace {

// In the order of ActivationKind.
constexpr const char* kNames[] = {"none",       "relu", "clip", "leaky_relu", "hard_sigmoid", "hard_swish",
                                  "sigmoid",    "tanh", "silu", "gelu",       "gelu_tanh",    "thresholded_relu",
                                  "elu",        "celu", "selu", "softplus",   "softsign",     "mish",
                                  "fake_quant8"};
static_assert(std::size(kNames) == static_cast<size_t>(ActivationKind::fake_quant8) + 1);

float attribute(const Graph& graph, const Node& node, const char* key, float otherwise) {
  const float* value = graph.attribute<float>(node, key);
  return value ? *value : otherwise;
}

std::optional<float> bound(const Graph& graph, const Node& node, size_t input, float otherwise) {
  if (node.inputs.size() <= input || node.inputs[input] == kNone) return otherwise;
  const Tensor* tensor = graph.constant(node.inputs[input]);
  if (!tensor || tensor->type != DataType::float32 || !tensor->data || tensor->size() != 1) return std::nullopt;
  return *tensor->as<float>();
}

std::optional<Activation> clip(const Graph& graph, const Node& node) {
  constexpr float kLow = std::numeric_limits<float>::lowest(), kHigh = std::numeric_limits<float>::max();
  if (node.opset < 11)
    return Activation::clip(attribute(graph, node, "min", kLow), attribute(graph, node, "max", kHigh));
  std::optional<float> low = bound(graph, node, 1, kLow), high = bound(graph, node, 2, kHigh);
  if (!low || !high) return std::nullopt;
  return Activation::clip(*low, *high);
}

std::optional<ActivationKind> kind_of(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (name == kNames[i]) return static_cast<ActivationKind>(i);
  return std::nullopt;
}

}  // namespace

std::optional<Activation> activation_of(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == kNone) return std::nullopt;
  const Type& type = graph.values[node.inputs[0]].type;
  if (!type.is_tensor() || type.elem != DataType::float32) return std::nullopt;
  const auto alpha = [&](float otherwise) { return attribute(graph, node, "alpha", otherwise); };
  if (node.is("Activation", "epona")) {
    const std::string* name = graph.attribute<std::string>(node, "activation");
    auto kind = name ? kind_of(*name) : std::nullopt;
    if (!kind) return std::nullopt;
    return Activation{*kind, attribute(graph, node, "activation_a", 0), attribute(graph, node, "activation_b", 0)};
  }
  if (!node.domain.empty()) return std::nullopt;
  if (node.op == "Relu") return Activation::relu();
  if (node.op == "Clip") return clip(graph, node);
  if (node.op == "LeakyRelu") return Activation::leaky_relu(alpha(0.01f));
  if (node.op == "Sigmoid") return Activation::sigmoid();
  if (node.op == "Tanh") return Activation::tanh();
  if (node.op == "HardSigmoid") return Activation::hard_sigmoid(alpha(0.2f), attribute(graph, node, "beta", 0.5f));
  if (node.op == "HardSwish") return Activation::hard_swish();
  if (node.op == "Swish") return Activation::silu(alpha(1));
  if (node.op == "Elu") return Activation{ActivationKind::elu, alpha(1), 0};
  if (node.op == "Celu") return Activation{ActivationKind::celu, alpha(1), 0};
  if (node.op == "Softplus") return Activation{ActivationKind::softplus, 0, 0};
  if (node.op == "Softsign") return Activation{ActivationKind::softsign, 0, 0};
  if (node.op == "Mish") return Activation{ActivationKind::mish, 0, 0};
  if (node.op == "Selu") {
    return Activation{ActivationKind::selu, alpha(1.67326319217681884765625f),
                      attribute(graph, node, "gamma", 1.05070102214813232421875f)};
  }
  if (node.op == "Gelu") {
    const std::string* approximate = graph.attribute<std::string>(node, "approximate");
    if (!approximate || *approximate == "none") return Activation::gelu();
    if (*approximate == "tanh") return Activation::gelu_tanh();
  }
  return std::nullopt;
}

void set_activation(Node& node, const Activation& activation) {
  node.attributes.insert_or_assign("activation", std::string(kNames[static_cast<size_t>(activation.kind)]));
  node.attributes.insert_or_assign("activation_a", activation.a);
  node.attributes.insert_or_assign("activation_b", activation.b);
}

Activation read_activation(const NodeInfo& info) {
  const std::string name = info.attr("activation", "none");
  auto kind = kind_of(name);
  if (!kind) info.refuse(Code::invalid_graph, "unknown activation \"", name, "\"");
  return {*kind, info.attr("activation_a", 0.0f), info.attr("activation_b", 0.0f)};
}

}  // namespace epona
