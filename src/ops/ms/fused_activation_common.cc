#include "ops/ms/fused_activation.h"

namespace epona {

Activation fused_activation(const NodeInfo& info, const std::vector<float>& parameters) {
  const std::string name = info.attr("activation", "");
  auto parameter = [&](size_t i, float otherwise) { return i < parameters.size() ? parameters[i] : otherwise; };
  if (name.empty()) return {};
  if (name == "Relu") return Activation::relu();
  if (name == "Tanh") return Activation::tanh();
  if (name == "Sigmoid") return Activation::sigmoid();
  if (name == "LeakyRelu") return Activation::leaky_relu(parameter(0, 0.01f));
  if (name == "HardSigmoid") return Activation::hard_sigmoid(parameter(0, 0.2f), parameter(1, 0.5f));
  if (name == "HardSwish") return Activation::hard_swish();
  if (name == "Clip" && parameters.size() >= 2) return Activation::clip(parameters[0], parameters[1]);
  info.refuse(Code::not_implemented, "activation \"", name, "\"");
}

}  // namespace epona
