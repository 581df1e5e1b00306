#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/types.h"

namespace epona {

/// Maps a number to an unsigned key of the same order: keys compare as the values do, -0 equals +0, and NaN comes after
/// everything else (as numpy sorts). So one sort of unsigned integers serves every type.
inline uint32_t sort_key(float v) {
  if (v != v) return 0xffffffffu;
  uint32_t bits = std::bit_cast<uint32_t>(v == 0 ? 0.0f : v);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
inline uint64_t sort_key(double v) {
  if (v != v) return ~uint64_t{0};
  uint64_t bits = std::bit_cast<uint64_t>(v == 0 ? 0.0 : v);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}
inline uint32_t sort_key(Float16 v) { return sort_key(static_cast<float>(v)); }
inline uint32_t sort_key(BFloat16 v) { return sort_key(static_cast<float>(v)); }
inline uint32_t sort_key(bool v) { return v; }
inline uint32_t sort_key(int8_t v) { return static_cast<uint32_t>(v) ^ 0x80000000u; }
inline uint32_t sort_key(int16_t v) { return static_cast<uint32_t>(v) ^ 0x80000000u; }
inline uint32_t sort_key(int32_t v) { return static_cast<uint32_t>(v) ^ 0x80000000u; }
inline uint64_t sort_key(int64_t v) {
  return static_cast<uint64_t>(v) ^ uint64_t { 1 } << 63;
}
inline uint32_t sort_key(uint8_t v) { return v; }
inline uint32_t sort_key(uint16_t v) { return v; }
inline uint32_t sort_key(uint32_t v) { return v; }
inline uint64_t sort_key(uint64_t v) { return v; }

}  // namespace epona
