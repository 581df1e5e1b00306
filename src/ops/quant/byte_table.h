#pragma once
#include "ops/quant/quant_common.h"

namespace epona {

inline bool is_byte_type(DataType type) { return type == DataType::uint8 || type == DataType::int8; }

/// The number that a byte of an int8 or uint8 tensor stands for.
inline int32_t byte_value(DataType type, uint8_t code) {
  return type == DataType::int8 ? static_cast<int8_t>(code) : code;
}

/// How an 8-bit tensor is quantised: one scale and zero point.
struct ByteScale {
  DataType type;
  float scale;
  int32_t zero;
  QuantRange range;

  /// From scalar tensors; the zero point may be absent.
  ByteScale(DataType elem, const Tensor& scale_tensor, const Tensor* zero_tensor)
      : type(elem), scale(scalar_scale(scale_tensor)), zero(scalar_zero(zero_tensor)) {
    quant_range(elem, range);
  }
  float real(uint8_t code) const { return static_cast<float>(byte_value(type, code) - zero) * scale; }
  uint8_t code(float value) const { return static_cast<uint8_t>(quantize_one(value / scale, zero, range)); }
};

/// The value of every code.
struct RealTable {
  float real[256];
  explicit RealTable(const ByteScale& from) {
    for (int i = 0; i < 256; ++i) real[i] = from.real(static_cast<uint8_t>(i));
  }
};

/// Code to code: dequantise, apply fn, quantise.
struct CodeTable {
  uint8_t code[256];
  template <class Fn>
  CodeTable(const ByteScale& from, const ByteScale& to, Fn&& fn) {
    for (int i = 0; i < 256; ++i) code[i] = to.code(fn(from.real(static_cast<uint8_t>(i))));
  }
};

/// Scale of input `scale`, zero point of input `zero` if it is there.
inline ByteScale byte_scale(const RunContext& c, DataType type, int scale, int zero) {
  return {type, c.in(scale), c.has(zero) ? &c.in(zero) : nullptr};
}

/// Refuses element types other than int8 and uint8, and scales and zero points that are not scalars.
inline void check_byte_type(const NodeInfo& info, int input) {
  if (!is_byte_type(info.in_type(input)))
    info.refuse(Code::not_implemented, "type ", info.in_type(input), " of input ", input, ", expected int8 or uint8");
}
inline void check_scalar(const ShapeContext& c, int input) {
  if (c.has(input) && c.in(input).size() != 1)
    c.refuse("input ", input, " has shape ", c.in(input), ", expected a scalar");
}

}  // namespace epona
