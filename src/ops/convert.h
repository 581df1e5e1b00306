#pragma once
#include <cstdint>

#include "base/small_float.h"
#include "base/types.h"

namespace epona {

struct ConvertOptions {
  bool saturate = true;  ///< small floats: out of range becomes the largest finite number
  RoundMode round = RoundMode::up;
};

/// Elements that convert_elements takes best at a time; ranges begin at multiples of it so that packed types stay whole.
constexpr int64_t kConvertBlock = 256;

/// to[i] = from[i] for i in [begin, end), between any two element types but complex ones. `begin` is a multiple of 4, so
/// is `end` unless it is the tensor's. Throws for a string that is not a number.
void convert_elements(DataType from_type, const void* from, DataType to_type, void* to, int64_t begin, int64_t end,
                      const ConvertOptions& options = {});

/// Packed 4-bit and 2-bit integers and float4e2m1 codes to one a byte (signed types sign-extended) and back.
void unpack_elements(DataType type, const void* from, int64_t begin, int64_t count, uint8_t* to);
void pack_elements(DataType type, const uint8_t* from, void* to, int64_t begin, int64_t count);

/// Any numeric type to float, count elements from `begin` on (a multiple of 4 for packed types).
void load_floats(DataType type, const void* from, int64_t begin, int64_t count, float* to);

}  // namespace epona
