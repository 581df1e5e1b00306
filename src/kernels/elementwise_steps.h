#pragma once
#include <cstdint>

#include "kernels/elementwise.h"

namespace epona {

/// Code of one instruction over n elements: source k is an array (inc 1), or one value repeated for a whole vector
/// (inc 0). dst may be one of the arrays.
using EwStepFunction = void (*)(const Activation& activation, const float* const* src, const int* inc, float* dst,
                                int64_t n);
EwStepFunction ew_step_function(EwOp op, ActivationKind kind);

}  // namespace epona
