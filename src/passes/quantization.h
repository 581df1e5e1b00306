#pragma once
#include <optional>

#include "graph/graph.h"

namespace epona {

/// One scale and zero point for a whole tensor of 8-bit integers.
struct Quantization {
  float scale = 1;
  int zero_point = 0;
  DataType type = DataType::uint8;

  bool operator==(const Quantization&) const = default;
  int low() const { return type == DataType::uint8 ? 0 : -128; }
  int high() const { return type == DataType::uint8 ? 255 : 127; }
  /// clamp(round_half_even(value / scale) + zero_point)
  int quantize(double value) const;
};

/// From the values that hold scale and zero point (kNone: 0); nothing when they are not constants, there is more than
/// one scale, or `quantized` is no tensor of 8-bit integers.
std::optional<Quantization> quantization_of(const Graph& graph, ValueId scale, ValueId zero_point,
                                            const Type& quantized);

/// Of a QuantizeLinear or DequantizeLinear node; `quantized` is the type on its integer side.
std::optional<Quantization> quantization_of(const Graph& graph, const Node& node, const Type& quantized);

}  // namespace epona
