#pragma once
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/pool.h"

namespace epona {

/// y = clamp(round_half_even(((a - a_zero) * a_scale + (b - b_zero) * b_scale) / y_scale) + y_zero, low, high), or the
/// product of the two in place of their sum.
struct ByteSum {
  const void *a = nullptr, *b = nullptr;
  void* y = nullptr;
  int64_t size = 0;
  bool a_signed = false, b_signed = false, y_signed = false, product = false;
  int32_t a_zero = 0, b_zero = 0, y_zero = 0, low = 0, high = 255;
  float a_scale = 1, b_scale = 1, y_scale = 1;
};
void add_bytes(const ByteSum& sum, ThreadPool& pool);

/// A pooling window over 8-bit images in NHWC: Pooling::planes is the batch.
struct BytePooling : Pooling {
  int64_t channels = 0;
  bool x_signed = false;
};
/// The largest input under the window; the lowest value where it covers nothing but padding.
void max_pool_bytes(const BytePooling& pooling, const void* x, void* y, ThreadPool& pool);

/// Means are requantised: y = clamp(round_half_even((mean - x_zero) * scale) + y_zero). Padding counts as x_zero.
struct ByteMean {
  int32_t x_zero = 0, y_zero = 0, low = 0, high = 255;
  float scale = 1;
  bool y_signed = false, include_pad = false;
};
void average_pool_bytes(const BytePooling& pooling, const ByteMean& mean, const void* x, void* y, ThreadPool& pool);

/// [batch, channels, pixels] floats -> [batch, pixels, channels] bytes: clamp(round_half_even(x / scale) + zero). NaN
/// gives the zero point.
struct ByteQuantization {
  float scale = 1;
  int32_t zero = 0, low = 0, high = 255;
};
void quantize_to_nhwc(const ByteQuantization& q, int64_t batch, int64_t channels, int64_t pixels, const float* x,
                      void* y, ThreadPool& pool);

}  // namespace epona
