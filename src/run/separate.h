#pragma once
#include <span>

#include "graph/tensor.h"

namespace epona {

/// Inside a run values are never changed, so several may lie in the same memory. Those of a caller are changed: gives
/// every tensor among `results`, and in their sequences, memory of its own. Memory that the caller passed in
/// (`given[i]`: of result i, or null) stays where it is.
void separate_memory(std::span<RuntimeValue> results, std::span<const void* const> given);

}  // namespace epona
