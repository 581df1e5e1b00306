#pragma once
#include <cstdint>

#include "base/thread_pool.h"

namespace epona {

/// Softmax over the middle dim of [outer, length, inner]. NaN in a slice makes all of it NaN; so does a slice of
/// nothing but -infinity.
struct Softmax {
  int64_t outer = 0, length = 0, inner = 1;
  bool log = false;  ///< log of it
};

/// In place is allowed.
void softmax(const Softmax& s, const float* x, float* y, ThreadPool& pool);

}  // namespace epona
