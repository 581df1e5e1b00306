#pragma once
#include <cstdint>

#include "base/types.h"

namespace epona {

/// Types that to_float() and from_float() know: float32, float16, bfloat16, int8, uint8, int32, boolean.
bool converts_with_float(DataType type);

/// n elements to fp32. Serial; not in place unless the type is float32 or int32.
void to_float(DataType type, const void* from, float* to, int64_t n);

/// n elements of fp32 to `type`: halves round to nearest even; integers truncate, and out of range give what x86 and
/// numpy give (the smallest int32, of which narrower types take the low bits); boolean is x != 0.
void from_float(DataType type, const float* from, void* to, int64_t n);

}  // namespace epona
