#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/conv.h"
#include "kernels/transpose2d.h"

namespace epona {

/// Lays `count` weights of each of `filters` (at most 16) filters side by side: out[i * out_stride + f] = w[f * stride + i],
/// and zero for f in [filters, 16).
inline void interleave_filters(int64_t filters, int64_t count, const float* w, int64_t stride, float* out,
                               int64_t out_stride) {
  constexpr int64_t kFloat = sizeof(float);
  transpose2d(kFloat, count, filters, reinterpret_cast<const char*>(w), stride * kFloat, reinterpret_cast<char*>(out),
              out_stride * kFloat);
  if (filters == kChannelBlock) return;
  for (int64_t i = 0; i < count; ++i)
    std::fill(out + i * out_stride + filters, out + i * out_stride + kChannelBlock, 0.0f);
}

}  // namespace epona
