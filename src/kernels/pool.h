#pragma once
#include <cstdint>

#include "base/thread_pool.h"

namespace epona {

/// A 2-D pooling window and one call's sizes, in the layout NCHW16c. Channels are independent: a block is a plane.
struct Pooling {
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1;
  int64_t planes = 0;  ///< batch * channel blocks
  int64_t in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
};

/// The largest input under the window; -inf where the window covers nothing but padding. NaN wins.
void max_pool_nchwc(const Pooling& pooling, const float* x, float* y, ThreadPool& pool);
/// The mean of the inputs under the window; with include_pad the padding counts as zeros.
void average_pool_nchwc(const Pooling& pooling, bool include_pad, const float* x, float* y, ThreadPool& pool);

enum class GlobalPool { average, max };
/// [planes, pixels, 16] -> [planes, 16].
void global_pool_nchwc(GlobalPool kind, int64_t planes, int64_t pixels, const float* x, float* y, ThreadPool& pool);

}  // namespace epona
