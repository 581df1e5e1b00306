#pragma once
#include <cstdint>

#include "ops/kernel.h"

namespace epona {

/// What ScatterElements, ScatterND and their like do where an update meets an element.
enum class Reduction { none, add, mul, max, min };

/// The `reduction` attribute; refuses an unknown one, and arithmetic on a type that has none.
Reduction scatter_reduction(const NodeInfo& info);

/// out[out_at + i] = out[out_at + i] (reduction) in[in_at + i] for i < n; offsets in elements. NaN wins max and min.
using CombineFn = void (*)(DataType type, int64_t n, const void* in, int64_t in_at, void* out, int64_t out_at);
CombineFn combine_fn(Reduction reduction, DataType type);

}  // namespace epona
