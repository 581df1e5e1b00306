#pragma once
#include <cstdint>

#include "base/types.h"

namespace epona {

/// How a number between two neighbours becomes a float8e8m0 (a power of two).
enum class RoundMode : uint8_t { up, down, nearest };

/// Types of at most eight bits that stand for floats: the float8 family, float8e8m0, float4e2m1.
bool is_small_float(DataType type);

/// Code of a small float, one to a byte. Rounds to nearest even. When out of range: the largest finite number with
/// `saturate`, else infinity or NaN, whichever the type has. `round` is for float8e8m0.
uint8_t encode_small_float(DataType type, float value, bool saturate = true, RoundMode round = RoundMode::up);
/// The value of a code.
float decode_small_float(DataType type, uint8_t code);
/// The values of all codes of a type (16 for float4e2m1, else 256).
const float* small_float_table(DataType type);

}  // namespace epona
