#include "base/small_float.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace epona {
namespace {

/// A sign bit, an exponent and `mantissa` bits.
struct Layout {
  int bits, mantissa, bias;
  uint8_t largest;    // code of the largest finite magnitude
  int nan;            // code of NaN without sign; -1: none
  int infinity;       // code of infinity; -1: none
  bool negative_nan;  // NaN and zero carry a sign; else the code of -0 is the NaN
};

const Layout& layout(DataType type) {
  static constexpr Layout e4m3fn{8, 3, 7, 0x7e, 0x7f, -1, true}, e4m3fnuz{8, 3, 8, 0x7f, 0x80, -1, false},
      e5m2{8, 2, 15, 0x7b, 0x7e, 0x7c, true}, e5m2fnuz{8, 2, 16, 0x7f, 0x80, -1, false},
      e2m1{4, 1, 1, 0x7, -1, -1, true};
  switch (type) {
    case DataType::float8e4m3fn:
      return e4m3fn;
    case DataType::float8e4m3fnuz:
      return e4m3fnuz;
    case DataType::float8e5m2:
      return e5m2;
    case DataType::float8e5m2fnuz:
      return e5m2fnuz;
    case DataType::float4e2m1:
      return e2m1;
    default:
      fail(Code::not_implemented, type, " is not a small float type");
  }
}

uint8_t encode_power(float value, bool saturate, RoundMode round) {
  constexpr uint8_t kNan = 255, kLargest = 254;
  if (std::isnan(value)) return kNan;
  uint32_t bits = std::bit_cast<uint32_t>(value) & 0x7fffffffu;
  if (bits == 0) return saturate ? 0 : kNan;
  if (bits == 0x7f800000u) return saturate ? kLargest : kNan;
  uint32_t exponent = bits >> 23, fraction = bits & 0x7fffffu;
  if (round == RoundMode::up) exponent += fraction > 0;
  // Subnormals: 0 stands for 2^-127, the float with only the top fraction bit set.
  if (round == RoundMode::nearest) exponent += exponent > 0 ? fraction >= 0x400000u : fraction >= 0x600000u;
  if (exponent > kLargest) return saturate ? kLargest : kNan;
  return static_cast<uint8_t>(exponent);
}

std::array<float, 256> make_table(DataType type) {
  std::array<float, 256> table{};
  for (int code = 0; code < (type == DataType::float4e2m1 ? 16 : 256); ++code)
    table[static_cast<size_t>(code)] = decode_small_float(type, static_cast<uint8_t>(code));
  return table;
}

}  // namespace

bool is_small_float(DataType type) {
  switch (type) {
    case DataType::float8e4m3fn:
    case DataType::float8e4m3fnuz:
    case DataType::float8e5m2:
    case DataType::float8e5m2fnuz:
    case DataType::float8e8m0:
    case DataType::float4e2m1:
      return true;
    default:
      return false;
  }
}

uint8_t encode_small_float(DataType type, float value, bool saturate, RoundMode round) {
  if (type == DataType::float8e8m0) return encode_power(value, saturate, round);
  const Layout& f = layout(type);
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffffu;
  const uint8_t sign = static_cast<uint8_t>((bits >> 31) << (f.bits - 1));
  const float size = std::bit_cast<float>(magnitude);
  if (size != size) {
    if (f.nan < 0) return static_cast<uint8_t>(sign ^ (1u << (f.bits - 1)));  // no NaN: a zero
    return static_cast<uint8_t>(f.nan | (f.negative_nan ? sign : 0));
  }
  uint32_t code;
  const int smallest_exponent = 1 - f.bias;
  if (magnitude < static_cast<uint32_t>(smallest_exponent + 127) << 23) {
    code = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, f.mantissa - smallest_exponent)));
  } else {
    const int shift = 23 - f.mantissa;
    uint32_t rounded = (magnitude + (1u << (shift - 1)) - 1 + ((magnitude >> shift) & 1u)) >> shift;
    code = rounded - (static_cast<uint32_t>(127 - f.bias) << f.mantissa);
  }
  if (code > f.largest) {
    if (saturate || f.nan < 0) return static_cast<uint8_t>(f.largest | sign);
    if (f.infinity >= 0) return static_cast<uint8_t>(f.infinity | sign);
    return static_cast<uint8_t>(f.nan | (f.negative_nan ? sign : 0));
  }
  if (code == 0 && !f.negative_nan) return 0;
  return static_cast<uint8_t>(code | sign);
}

float decode_small_float(DataType type, uint8_t code) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (type == DataType::float8e8m0) return code == 255 ? kNan : std::ldexp(1.0f, code - 127);
  const Layout& f = layout(type);
  if (!f.negative_nan && code == f.nan) return kNan;
  const int sign_bit = 1 << (f.bits - 1);
  const int magnitude = code & (sign_bit - 1);
  const float sign = code & sign_bit ? -1.0f : 1.0f;
  if (magnitude > f.largest) {
    if (magnitude == f.infinity) return sign * std::numeric_limits<float>::infinity();
    return std::copysign(kNan, sign);
  }
  const int exponent = magnitude >> f.mantissa, fraction = magnitude & ((1 << f.mantissa) - 1);
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - f.bias - f.mantissa);
  return sign * std::ldexp(static_cast<float>(fraction + (1 << f.mantissa)), exponent - f.bias - f.mantissa);
}

const float* small_float_table(DataType type) {
  static const auto e4m3fn = make_table(DataType::float8e4m3fn), e4m3fnuz = make_table(DataType::float8e4m3fnuz),
                    e5m2 = make_table(DataType::float8e5m2), e5m2fnuz = make_table(DataType::float8e5m2fnuz),
                    e8m0 = make_table(DataType::float8e8m0), e2m1 = make_table(DataType::float4e2m1);
  switch (type) {
    case DataType::float8e4m3fn:
      return e4m3fn.data();
    case DataType::float8e4m3fnuz:
      return e4m3fnuz.data();
    case DataType::float8e5m2:
      return e5m2.data();
    case DataType::float8e5m2fnuz:
      return e5m2fnuz.data();
    case DataType::float8e8m0:
      return e8m0.data();
    case DataType::float4e2m1:
      return e2m1.data();
    default:
      fail(Code::not_implemented, type, " is not a small float type");
  }
}

}  // namespace epona
