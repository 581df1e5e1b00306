#pragma once
#include <span>

#include "graph/tensor.h"

namespace epona {

/// Inside a run values are never changed, so several may lie in the same memory. Those of a caller are changed: gives
/// every tensor among `results`, and in their sequences, memory of its own. Memory that the caller passed in stays where
/// it is: `given` has the address for each result, null without one. Allocates only where memory is shared, or for
/// sequences and very many results.
void separate_memory(std::span<RuntimeValue> results, std::span<const void* const> given);

}  // namespace epona
