#pragma once
#include <cstdint>

#include "base/thread_pool.h"

namespace epona {

/// [N, C, pixels] -> [N, ceil(C / 16), pixels, 16]; channels past C become zero.
void reorder_to_nchwc(const float* x, float* y, int64_t batch, int64_t channels, int64_t pixels, ThreadPool& pool);
/// The inverse.
void reorder_from_nchwc(const float* x, float* y, int64_t batch, int64_t channels, int64_t pixels, ThreadPool& pool);
/// [N, pixels, C] -> [N, ceil(C / 16), pixels, 16] and back.
void reorder_nhwc_to_nchwc(const float* x, float* y, int64_t batch, int64_t channels, int64_t pixels, ThreadPool& pool);
void reorder_nchwc_to_nhwc(const float* x, float* y, int64_t batch, int64_t channels, int64_t pixels, ThreadPool& pool);

}  // namespace epona
