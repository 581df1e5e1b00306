#include "kernels/resample.h"

#include <algorithm>

namespace epona {
namespace {

/// Rows of `inner` contiguous elements: weighted sums of whole rows.
template <class T>
void sum_rows(const AxisTaps& axis, int64_t inner, int64_t i, const T* in, T* out) {
  const int32_t* index = axis.index + i * axis.taps;
  const double* weight = axis.weight + i * axis.taps;
  if (axis.taps == 2) {
    const T *a = in + index[0] * inner, *b = in + index[1] * inner;
    T wa = static_cast<T>(weight[0]), wb = static_cast<T>(weight[1]);
    for (int64_t j = 0; j < inner; ++j) out[j] = wa * a[j] + wb * b[j];
    return;
  }
  std::fill_n(out, inner, T(0));
  for (int t = 0; t < axis.taps; ++t) {
    const T* row = in + index[t] * inner;
    T w = static_cast<T>(weight[t]);
    if (w == 0) continue;
    for (int64_t j = 0; j < inner; ++j) out[j] += w * row[j];
  }
}

}  // namespace

template <class T>
void resample_axis(ThreadPool& pool, const AxisTaps& axis, int64_t outer, int64_t inner, const T* in, T* out) {
  double cost = 0.3 * axis.taps;
  if (inner > 1) {
    pool.parallel_for(outer * axis.out, 5 + cost * static_cast<double>(inner), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t i = r % axis.out;
        if (axis.index[i * axis.taps] == AxisTaps::kOutside)
          std::fill_n(out + r * inner, inner, static_cast<T>(axis.outside));
        else
          sum_rows(axis, inner, i, in + r / axis.out * axis.in * inner, out + r * inner);
      }
    });
    return;
  }
  pool.parallel_for(outer, 5 + cost * 2 * static_cast<double>(axis.out), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* from = in + r * axis.in;
      T* to = out + r * axis.out;
      const int32_t* index = axis.index;
      const double* weight = axis.weight;
      for (int64_t i = 0; i < axis.out; ++i, index += axis.taps, weight += axis.taps) {
        if (index[0] == AxisTaps::kOutside) {
          to[i] = static_cast<T>(axis.outside);
          continue;
        }
        T sum = 0;
        for (int t = 0; t < axis.taps; ++t)
          if (weight[t] != 0) sum += static_cast<T>(weight[t]) * from[index[t]];
        to[i] = sum;
      }
    }
  });
}

template void resample_axis(ThreadPool&, const AxisTaps&, int64_t, int64_t, const float*, float*);
template void resample_axis(ThreadPool&, const AxisTaps&, int64_t, int64_t, const double*, double*);

}  // namespace epona
