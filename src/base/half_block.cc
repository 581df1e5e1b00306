#include "base/half_block.h"

#include <bit>

namespace epona {
namespace {

// Without branches, so that the compiler makes vectors of it: shift into place and let one multiplication scale the
// exponent (and normalise subnormals); infinities and NaNs get their exponent back by a select.
inline float widen_one(uint16_t h) {
  uint32_t magnitude = static_cast<uint32_t>(h & 0x7fffu) << 13;
  uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  uint32_t bits = magnitude >= 0x0f800000u ? (magnitude | 0x7f800000u) : scaled;
  return std::bit_cast<float>(bits | static_cast<uint32_t>(h & 0x8000u) << 16);
}

}  // namespace

void widen_half(DataType type, const void* from, float* to, int64_t n) {
  const uint16_t* bits = static_cast<const uint16_t*>(from);
  if (type == DataType::bfloat16) {
    for (int64_t i = 0; i < n; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(bits[i]) << 16);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = widen_one(bits[i]);
  }
}

void narrow_half(DataType type, const float* from, void* to, int64_t n) {
  uint16_t* bits = static_cast<uint16_t*>(to);
  if (type == DataType::bfloat16) {
    for (int64_t i = 0; i < n; ++i) bits[i] = detail::float_to_bfloat(from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) bits[i] = detail::float_to_half(from[i]);
  }
}

}  // namespace epona
