#pragma once
#include <cstdint>

#include "base/thread_pool.h"

namespace epona {

/// Scales and zero points of a run of elements: one for all (step 0) or one each (step 1). A null zero is 0.
struct QuantScales {
  const float* scale;
  const int32_t* zero = nullptr;
  int64_t step = 0;
};

/// to[i] = clamp(round_half_even(x[i] / scale) + zero) to [0, 255], or to [-128, 127] when is_signed. NaN gives the zero
/// point. Serial, as the next.
void quantize_bytes(const float* x, const QuantScales& scales, bool is_signed, void* to, int64_t n);

/// to[i] = (q[i] - zero) * scale, q of uint8, or of int8 when is_signed.
void dequantize_bytes(const void* q, const QuantScales& scales, bool is_signed, float* to, int64_t n);

/// The least and the largest of x and 0; NaN does not count.
struct ValueRange {
  float low = 0, high = 0;
};
ValueRange value_range(const float* x, int64_t n);
ValueRange value_range(const float* x, int64_t n, ThreadPool& pool);

/// Scale and zero point that DynamicQuantizeLinear gives values of a range, for uint8.
struct DynamicScale {
  float scale;
  int32_t zero;
};
DynamicScale dynamic_scale(const ValueRange& range);

}  // namespace epona
