#pragma once
#include <cstdint>

#include "base/types.h"

namespace epona {

inline bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

/// Elements that kernels convert at a time when they compute on 16-bit floats in float.
constexpr int64_t kHalfBlock = 256;

/// n elements of float16 or bfloat16 to float and back (nearest even); defined with the vector kernels.
void widen_half(DataType type, const void* from, float* to, int64_t n);
void narrow_half(DataType type, const float* from, void* to, int64_t n);

}  // namespace epona
