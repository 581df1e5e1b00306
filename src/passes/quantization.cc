#include "passes/quantization.h"

#include <algorithm>
#include <cmath>

#include "passes/rewrite.h"

namespace epona {

int Quantization::quantize(double value) const {
  const double q = std::nearbyint(value / static_cast<double>(scale)) + zero_point;
  return static_cast<int>(std::min<double>(high(), std::max<double>(low(), q)));
}

std::optional<Quantization> quantization_of(const Graph& graph, ValueId scale, ValueId zero_point,
                                            const Type& quantized) {
  if (!quantized.is_tensor() || (quantized.elem != DataType::uint8 && quantized.elem != DataType::int8))
    return std::nullopt;
  const Tensor* step = graph.constant(scale);
  if (!step || step->type != DataType::float32 || !step->data || step->size() != 1) return std::nullopt;
  Quantization q{*step->as<float>(), 0, quantized.elem};
  if (!(q.scale > 0) || !std::isfinite(q.scale)) return std::nullopt;
  if (zero_point != kNone) {
    const auto zero = constant_scalar(graph, zero_point);
    if (!zero || *zero < q.low() || *zero > q.high()) return std::nullopt;
    q.zero_point = static_cast<int>(*zero);
  }
  return q;
}

std::optional<Quantization> quantization_of(const Graph& graph, const Node& node, const Type& quantized) {
  if (node.inputs.size() < 2 || node.attributes.contains("block_size")) return std::nullopt;
  const int64_t* precision = graph.attribute<int64_t>(node, "precision");
  if (precision && *precision != 0 && *precision != static_cast<int64_t>(DataType::float32)) return std::nullopt;
  return quantization_of(graph, node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : kNone, quantized);
}

}  // namespace epona
