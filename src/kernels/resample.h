#pragma once
#include <cstdint>

#include "base/thread_pool.h"

namespace epona {

/// How one axis is resampled: output position i is the sum of `taps` input positions with weights. A first index of
/// kOutside makes it the constant `outside`.
struct AxisTaps {
  static constexpr int32_t kOutside = -1;
  int64_t in = 0, out = 0;  ///< length of the axis before and after
  int taps = 1;
  const int32_t* index = nullptr;  ///< out x taps, all in [0, in)
  const double* weight = nullptr;  ///< out x taps
  double outside = 0;
};

/// Resamples the middle axis of [outer, axis.in, inner]. T is float or double; `in` and `out` do not overlap.
template <class T>
void resample_axis(ThreadPool& pool, const AxisTaps& axis, int64_t outer, int64_t inner, const T* in, T* out);

}  // namespace epona
