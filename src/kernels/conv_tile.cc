#include "kernels/conv_tile.h"

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
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kChannelBlock>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(HWY_MAX_LANES_D(D));
constexpr int kBlockVectors = kChannelBlock / kLanes;

// Padding pixels read from here.
alignas(64) constexpr float kZeroPixel[kChannelBlock] = {};

template <int kPixels, int kVectors>
HWY_INLINE void start(const TileOutput& out, V (&sum)[kPixels][kVectors]) {
  constexpr D d;
  if (out.resume) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      const float* y = out.y + v / kBlockVectors * out.block_stride + v % kBlockVectors * kLanes;
      HWY_UNROLL(16)
      for (int p = 0; p < kPixels; ++p) sum[p][v] = hn::Load(d, y + p * kChannelBlock);
    }
  } else if (out.bias != nullptr) {
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      const V bias = hn::Load(d, out.bias + v * kLanes);
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
}

/// One input channel: sum += x * w. Keeps the smaller of the two operands in registers.
template <int kPixels, int kVectors>
HWY_INLINE void accumulate(const float* const (&pixel)[kPixels], int64_t i, const float* HWY_RESTRICT w,
                           V (&sum)[kPixels][kVectors]) {
  constexpr D d;
  if constexpr (kVectors <= kPixels) {
    V wv[kVectors];
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) wv[v] = hn::Load(d, w + v * kLanes);
    HWY_UNROLL(16)
    for (int p = 0; p < kPixels; ++p) {
      const V x = hn::Set(d, pixel[p][i]);
      HWY_UNROLL(16)
      for (int v = 0; v < kVectors; ++v) sum[p][v] = hn::MulAdd(x, wv[v], sum[p][v]);
    }
  } else {
    V x[kPixels];
    HWY_UNROLL(16)
    for (int p = 0; p < kPixels; ++p) x[p] = hn::Set(d, pixel[p][i]);
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      const V wv = hn::Load(d, w + v * kLanes);
      HWY_UNROLL(16)
      for (int p = 0; p < kPixels; ++p) sum[p][v] = hn::MulAdd(x[p], wv, sum[p][v]);
    }
  }
}

/// Activations too large for the tile's code work on what the tile has stored.
HWY_NOINLINE void finish_stored(const TileOutput& out, int block, int pixels) {
  constexpr D d;
  float* y = out.y + block * out.block_stride;
  activate_range(out.activation, y, pixels * kChannelBlock);
  if (out.residual == nullptr || !out.residual_last) return;
  const float* r = out.residual + block * out.block_stride;
  for (int i = 0; i < pixels * kChannelBlock; i += kLanes) {
    hn::Store(hn::Add(hn::Load(d, y + i), hn::Load(d, r + i)), d, y + i);
  }
}

template <int kPixels, int kVectors>
HWY_INLINE void add_residual(const TileOutput& out, V (&sum)[kPixels][kVectors]) {
  constexpr D d;
  HWY_UNROLL(16)
  for (int v = 0; v < kVectors; ++v) {
    const float* r = out.residual + v / kBlockVectors * out.block_stride + v % kBlockVectors * kLanes;
    HWY_UNROLL(16)
    for (int p = 0; p < kPixels; ++p) sum[p][v] = hn::Add(sum[p][v], hn::Load(d, r + p * kChannelBlock));
  }
}

template <int kPixels, int kVectors>
HWY_INLINE void store(const TileOutput& out, const V (&sum)[kPixels][kVectors]) {
  constexpr D d;
  HWY_UNROLL(16)
  for (int v = 0; v < kVectors; ++v) {
    float* y = out.y + v / kBlockVectors * out.block_stride + v % kBlockVectors * kLanes;
    HWY_UNROLL(16)
    for (int p = 0; p < kPixels; ++p) hn::Store(sum[p][v], d, y + p * kChannelBlock);
  }
}

template <int kPixels, int kVectors>
HWY_INLINE void finish(const TileOutput& out, V (&sum)[kPixels][kVectors]) {
  constexpr D d;
  const Range range = clamp_range(out.activation);
  if (out.residual != nullptr && !out.residual_last) add_residual(out, sum);
  if (range.clamps) {
    const V low = hn::Set(d, range.low), high = hn::Set(d, range.high);
    HWY_UNROLL(16)
    for (int v = 0; v < kVectors; ++v) {
      HWY_UNROLL(16)
      for (int p = 0; p < kPixels; ++p) sum[p][v] = clamp(low, high, sum[p][v]);
    }
  }
  if (out.residual != nullptr && out.residual_last && !range.out_of_line) add_residual(out, sum);
  store(out, sum);
  if (range.out_of_line) {
    for (int b = 0; b < kVectors / kBlockVectors; ++b) finish_stored(out, b, kPixels);
  }
}

template <int kBlocks, int kPixels>
HWY_NOINLINE void conv_tile(const ConvTile& t) {
  constexpr int kWidth = kBlocks * kChannelBlock;
  V sum[kPixels][kBlocks * kBlockVectors];
  start(t.out, sum);
  const float* x = t.x;
  const float* w_block = t.w;
  const float* prefetch = t.prefetch;
  for (int64_t left = t.in_channels; left > 0; left -= kChannelBlock) {
    const int64_t channels = left < kChannelBlock ? left : kChannelBlock;
    for (int i = 0; i < t.tap_count; ++i) {
      const ConvTap& tap = t.taps[i];
      const float* pixel[kPixels];
      HWY_UNROLL(16)
      for (int p = 0; p < kPixels; ++p) pixel[p] = tap.offsets[p] < 0 ? kZeroPixel : x + tap.offsets[p];
      const float* w = w_block + tap.index * channels * kWidth;
      for (int64_t c = 0; c < channels; ++c, w += kWidth, prefetch += t.prefetch_step) {
        __builtin_prefetch(prefetch, 0, 2);
        accumulate(pixel, c, w, sum);
      }
    }
    x += t.x_block_stride;
    w_block += t.filter_taps * channels * kWidth;
  }
  finish(t.out, sum);
}

template <int kBlocks, int kPixels>
HWY_NOINLINE void stem_tile(const StemTile& t) {
  constexpr int kWidth = kBlocks * kChannelBlock;
  V sum[kPixels][kBlocks * kBlockVectors];
  start(t.out, sum);
  const float* pixel[kPixels];
  HWY_UNROLL(16)
  for (int p = 0; p < kPixels; ++p) pixel[p] = t.x + p * t.pixel_stride;
  const float* w = t.w;
  for (int64_t i = 0; i < t.depth; ++i, w += kWidth) accumulate(pixel, t.offsets[i], w, sum);
  finish(t.out, sum);
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
  ((table.conv[kBlocks][kPixels + 1] = &conv_tile<kBlocks, kPixels + 1>), ...);
  ((table.stem[kBlocks][kPixels + 1] = &stem_tile<kBlocks, kPixels + 1>), ...);
}

template <int... kBlocks>
ConvTileKernels make_table(std::integer_sequence<int, kBlocks...>) {
  ConvTileKernels table = {};
  table.max_blocks = kMaxTileBlocks;
  (fill<kBlocks + 1>(table, std::make_integer_sequence<int, max_pixels(kBlocks + 1)>()), ...);
  return table;
}

}  // namespace

const ConvTileKernels& conv_tile_table() {
  static const ConvTileKernels table = make_table(std::make_integer_sequence<int, kMaxTileBlocks>());
  return table;
}

}  // namespace epona::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {
HWY_EXPORT(conv_tile_table);
const ConvTileKernels& conv_tile_kernels() { return HWY_DYNAMIC_DISPATCH(conv_tile_table)(); }
}  // namespace epona
#endif
