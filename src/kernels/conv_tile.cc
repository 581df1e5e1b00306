#include "kernels/conv_tile.h"

#include <limits>
#include <utility>

#include "kernels/conv.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv_tile.cc"
#include "kernels/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kChannelBlock>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(HWY_MAX_LANES_D(D));
constexpr int kBlockVectors = kChannelBlock / kLanes;

// Padding pixels read from here.
alignas(64) constexpr float kZeroPixel[kChannelBlock] = {};

template <int kBlocks, int kPixels>
HWY_NOINLINE void tile(const ConvTile& t) {
  constexpr D d;
  constexpr int kVectors = kBlocks * kBlockVectors;
  V sum[kPixels][kVectors];
  if (t.bias != nullptr) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      const V bias = hn::Load(d, t.bias + v * kLanes);
      HWY_UNROLL(16)
      for (int p = 0; p < kPixels; ++p) sum[p][v] = bias;
    }
  } else {
    HWY_UNROLL(16)
    for (int p = 0; p < kPixels; ++p) {
      HWY_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::Zero(d);
    }
  }

  const float* x = t.x;
  const float* w_block = t.w;
  for (int64_t left = t.in_channels; left > 0; left -= kChannelBlock) {
    const int64_t channels = left < kChannelBlock ? left : kChannelBlock;
    for (int i = 0; i < t.tap_count; ++i) {
      const ConvTap& tap = t.taps[i];
      const float* pixel[kPixels];
      HWY_UNROLL(16)
      for (int p = 0; p < kPixels; ++p) pixel[p] = tap.offsets[p] < 0 ? kZeroPixel : x + tap.offsets[p];
      const float* w = w_block + tap.index * channels * (kBlocks * kChannelBlock);
      for (int64_t c = 0; c < channels; ++c, w += kBlocks * kChannelBlock) {
        if constexpr (kVectors <= kPixels) {
          V wv[kVectors];
          HWY_UNROLL(16)
          for (int v = 0; v < kVectors; ++v) wv[v] = hn::Load(d, w + v * kLanes);
          HWY_UNROLL(16)
          for (int p = 0; p < kPixels; ++p) {
            const V b = hn::Set(d, pixel[p][c]);
            HWY_UNROLL(16)
            for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::MulAdd(b, wv[v], sum[p][v]);
          }
        } else {
          V b[kPixels];
          HWY_UNROLL(16)
          for (int p = 0; p < kPixels; ++p) b[p] = hn::Set(d, pixel[p][c]);
          HWY_UNROLL(16)
          for (int v = 0; v < kVectors; ++v) {
            const V wv = hn::Load(d, w + v * kLanes);
            HWY_UNROLL(16)
            for (int p = 0; p < kPixels; ++p) sum[p][v] = hn::MulAdd(b[p], wv, sum[p][v]);
          }
        }
      }
    }
    x += t.x_block_stride;
    w_block += t.filter_taps * channels * (kBlocks * kChannelBlock);
  }

  if (t.residual != nullptr) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      const float* r = t.residual + v / kBlockVectors * t.y_block_stride + v % kBlockVectors * kLanes;
      HWY_UNROLL(16)
      for (int p = 0; p < kPixels; ++p) sum[p][v] = hn::Add(sum[p][v], hn::Load(d, r + p * kChannelBlock));
    }
  }
  const Range range = clamp_range(t.activation);
  if (range.clamps) {
    const V low = hn::Set(d, range.low), high = hn::Set(d, range.high);
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      HWY_UNROLL(16)
      for (int p = 0; p < kPixels; ++p) sum[p][v] = clamp(low, high, sum[p][v]);
    }
  }
  HWY_UNROLL(16)
  for (int v = 0; v < kVectors; ++v) {
    float* y = t.y + v / kBlockVectors * t.y_block_stride + v % kBlockVectors * kLanes;
    HWY_UNROLL(16)
    for (int p = 0; p < kPixels; ++p) hn::Store(sum[p][v], d, y + p * kChannelBlock);
  }
  if (range.out_of_line) {
    for (int b = 0; b < kBlocks; ++b) activate_range(t.activation, t.y + b * t.y_block_stride, kPixels * kChannelBlock);
  }
}

// The sums take all registers but those for the weights, the broadcasts and (without FMA) a product.
constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 ? 32 : 16;
constexpr int max_pixels(int blocks) {
  const int vectors = blocks * kBlockVectors;
  int pixels = 0;
  while (pixels < ConvTileKernels::kMaxPixels &&
         (pixels + 1) * vectors + (vectors < pixels + 1 ? vectors + 1 : pixels + 2) <= kRegisters) {
    ++pixels;
  }
  return pixels;
}
constexpr int kMaxTileBlocks = kLanes >= 8 ? 2 : 1;

template <int kBlocks, int... kPixels>
void fill(ConvTileKernels& table, std::integer_sequence<int, kPixels...>) {
  table.max_pixels[kBlocks] = sizeof...(kPixels);
  ((table.run[kBlocks][kPixels + 1] = &tile<kBlocks, kPixels + 1>), ...);
}

template <int... kBlocks>
ConvTileKernels make_table(std::integer_sequence<int, kBlocks...>) {
  ConvTileKernels table = {};
  table.max_blocks = kMaxTileBlocks;
  (fill<kBlocks + 1>(table, std::make_integer_sequence<int, max_pixels(kBlocks + 1)>()), ...);
  return table;
}

const ConvTileKernels& tile_kernels() {
  static const ConvTileKernels table = make_table(std::make_integer_sequence<int, kMaxTileBlocks>());
  return table;
}

}  // namespace epona::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {
HWY_EXPORT(tile_kernels);
const ConvTileKernels& conv_tile_kernels() { return HWY_DYNAMIC_DISPATCH(tile_kernels)(); }
}  // namespace epona
#endif
