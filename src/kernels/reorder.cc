#include "kernels/reorder.h"

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/conv.h"

// Memory-bound: 128-bit transposes of the baseline instruction set keep up, so there is one target only.
namespace epona {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr double kNsPerFloat = 0.25;

/// 4x4: rows of `x`, x_stride apart, become columns of `y`.
HWY_INLINE void transpose4(const float* x, int64_t x_stride, float* y, int64_t y_stride) {
  const hn::Full128<float> d;
  const hn::Repartition<double, decltype(d)> dd;
  const auto r0 = hn::LoadU(d, x), r1 = hn::LoadU(d, x + x_stride);
  const auto r2 = hn::LoadU(d, x + 2 * x_stride), r3 = hn::LoadU(d, x + 3 * x_stride);
  const auto a = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1)), b = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
  const auto c = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1)), e = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, a, b)), d, y);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, a, b)), d, y + y_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, c, e)), d, y + 2 * y_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, c, e)), d, y + 3 * y_stride);
}

/// y[j][i] = x[i][j] for i < rows, j < columns.
void transpose(const float* x, int64_t x_stride, int64_t rows, int64_t columns, float* y, int64_t y_stride) {
  const int64_t r4 = rows / 4 * 4, c4 = columns / 4 * 4;
  for (int64_t j = 0; j < c4; j += 4) {
    for (int64_t i = 0; i < r4; i += 4) transpose4(x + i * x_stride + j, x_stride, y + j * y_stride + i, y_stride);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < r4 ? c4 : 0; j < columns; ++j) y[j * y_stride + i] = x[i * x_stride + j];
  }
}

/// Calls fn(image, block, first pixel, pixels) on pieces of every channel block.
template <class F>
void for_blocks(int64_t batch, int64_t channels, int64_t pixels, ThreadPool& pool, F fn) {
  constexpr int64_t kPiece = 1024;
  const int64_t blocks = channel_blocks(channels), pieces = (pixels + kPiece - 1) / kPiece;
  const double ns = kNsPerFloat * kChannelBlock * static_cast<double>(std::min(pixels, kPiece));
  pool.parallel_for(batch * blocks * pieces, ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % pieces * kPiece, block = i / pieces % blocks, image = i / pieces / blocks;
      fn(image, block, first, std::min(kPiece, pixels - first));
    }
  });
}

int64_t real_channels(int64_t channels, int64_t block) {
  return std::min<int64_t>(kChannelBlock, channels - block * kChannelBlock);
}

void clear_padding(float* y, int64_t real, int64_t count) {
  if (real == kChannelBlock) return;
  for (int64_t p = 0; p < count; ++p) std::fill(y + p * kChannelBlock + real, y + (p + 1) * kChannelBlock, 0.0f);
}

}  // namespace

void reorder_to_nchwc(const float* x, float* y, int64_t batch, int64_t channels, int64_t pixels, ThreadPool& pool) {
  for_blocks(batch, channels, pixels, pool, [&](int64_t n, int64_t block, int64_t first, int64_t count) {
    const int64_t real = real_channels(channels, block);
    float* to = y + ((n * channel_blocks(channels) + block) * pixels + first) * kChannelBlock;
    transpose(x + (n * channels + block * kChannelBlock) * pixels + first, pixels, real, count, to, kChannelBlock);
    clear_padding(to, real, count);
  });
}

void reorder_from_nchwc(const float* x, float* y, int64_t batch, int64_t channels, int64_t pixels, ThreadPool& pool) {
  for_blocks(batch, channels, pixels, pool, [&](int64_t n, int64_t block, int64_t first, int64_t count) {
    const float* from = x + ((n * channel_blocks(channels) + block) * pixels + first) * kChannelBlock;
    transpose(from, kChannelBlock, count, real_channels(channels, block),
              y + (n * channels + block * kChannelBlock) * pixels + first, pixels);
  });
}

void reorder_nhwc_to_nchwc(const float* x, float* y, int64_t batch, int64_t channels, int64_t pixels,
                           ThreadPool& pool) {
  for_blocks(batch, channels, pixels, pool, [&](int64_t n, int64_t block, int64_t first, int64_t count) {
    const int64_t real = real_channels(channels, block);
    const float* from = x + (n * pixels + first) * channels + block * kChannelBlock;
    float* to = y + ((n * channel_blocks(channels) + block) * pixels + first) * kChannelBlock;
    for (int64_t p = 0; p < count; ++p) std::memcpy(to + p * kChannelBlock, from + p * channels, real * sizeof(float));
    clear_padding(to, real, count);
  });
}

void reorder_nchwc_to_nhwc(const float* x, float* y, int64_t batch, int64_t channels, int64_t pixels,
                           ThreadPool& pool) {
  for_blocks(batch, channels, pixels, pool, [&](int64_t n, int64_t block, int64_t first, int64_t count) {
    const int64_t real = real_channels(channels, block);
    const float* from = x + ((n * channel_blocks(channels) + block) * pixels + first) * kChannelBlock;
    float* to = y + (n * pixels + first) * channels + block * kChannelBlock;
    for (int64_t p = 0; p < count; ++p) std::memcpy(to + p * channels, from + p * kChannelBlock, real * sizeof(float));
  });
}

}  // namespace epona
