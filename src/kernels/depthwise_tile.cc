#include "kernels/depthwise_tile.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/depthwise_tile.cc"
#include "kernels/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(HWY_MAX_LANES_D(D));

template <int kPixels>
HWY_INLINE void add_residual(const TileOutput& out, int lane, V (&sum)[kPixels]) {
  HWY_UNROLL(8)
  for (int p = 0; p < kPixels; ++p) sum[p] = hn::Add(sum[p], hn::Load(D(), out.residual + p * 16 + lane));
}

template <int kPixels>
HWY_INLINE void finish(const TileOutput& out, int lane, V (&sum)[kPixels]) {
  constexpr D d;
  const Range range = clamp_range(out.activation);
  if (out.residual != nullptr && !out.residual_last) add_residual(out, lane, sum);
  if (range.clamps) {
    const V low = hn::Set(d, range.low), high = hn::Set(d, range.high);
    HWY_UNROLL(8)
    for (int p = 0; p < kPixels; ++p) sum[p] = clamp(low, high, sum[p]);
  }
  if (out.residual != nullptr && out.residual_last && !range.out_of_line) add_residual(out, lane, sum);
  HWY_UNROLL(8)
  for (int p = 0; p < kPixels; ++p) hn::Store(sum[p], d, out.y + p * 16 + lane);
}

HWY_INLINE void finish_stored(const TileOutput& out, int pixels) {
  if (!clamp_range(out.activation).out_of_line) return;
  activate_range(out.activation, out.y, pixels * 16);
  if (out.residual == nullptr || !out.residual_last) return;
  for (int i = 0; i < pixels * 16; i += kLanes) {
    hn::Store(hn::Add(hn::Load(D(), out.y + i), hn::Load(D(), out.residual + i)), D(), out.y + i);
  }
}

// One input column is loaded once and used by all outputs under it. Every column is tested against the image: the
// tests are free next to the arithmetic, and no border needs code of its own.
template <int kWidth, int kStride, int kPixels>
HWY_NOINLINE void special(const DepthwiseTile& t) {
  constexpr D d;
  constexpr int kColumns = (kPixels - 1) * kStride + kWidth;
  for (int lane = 0; lane < 16; lane += kLanes) {
    V sum[kPixels];
    const V bias = hn::Load(d, t.out.bias + lane);
    HWY_UNROLL(8)
    for (int p = 0; p < kPixels; ++p) sum[p] = bias;
    const float* x = t.x + lane;
    const float* w = t.w + lane;
    for (int row = 0; row < t.rows; ++row, x += t.x_row_stride, w += kWidth * 16) {
      V filter[kWidth];
      HWY_UNROLL(8)
      for (int k = 0; k < kWidth; ++k) filter[k] = hn::Load(d, w + k * 16);
      HWY_UNROLL(32)
      for (int j = 0; j < kColumns; ++j) {
        if (j < t.column_begin || j >= t.column_end) continue;
        const V column = hn::Load(d, x + j * 16);
        HWY_UNROLL(8)
        for (int p = 0; p < kPixels; ++p) {
          const int k = j - p * kStride;
          if (k >= 0 && k < kWidth) sum[p] = hn::MulAdd(column, filter[k], sum[p]);
        }
      }
    }
    finish(t.out, lane, sum);
  }
  finish_stored(t.out, kPixels);
}

template <int kPixels>
HWY_NOINLINE void general(const DepthwiseTile& t) {
  constexpr D d;
  for (int lane = 0; lane < 16; lane += kLanes) {
    V sum[kPixels];
    const V bias = hn::Load(d, t.out.bias + lane);
    HWY_UNROLL(8)
    for (int p = 0; p < kPixels; ++p) sum[p] = bias;
    for (int row = 0; row < t.rows; ++row) {
      for (int k = 0; k < t.kernel_w; ++k) {
        const V filter = hn::Load(d, t.w + (row * t.kernel_w + k) * 16 + lane);
        const int first = k * t.dilation_w;
        const float* x = t.x + row * t.x_row_stride + lane;
        HWY_UNROLL(8)
        for (int p = 0; p < kPixels; ++p) {
          const int column = first + p * t.stride_w;
          if (column >= t.column_begin && column < t.column_end) {
            sum[p] = hn::MulAdd(hn::Load(d, x + column * int64_t{16}), filter, sum[p]);
          }
        }
      }
    }
    finish(t.out, lane, sum);
  }
  finish_stored(t.out, kPixels);
}

template <int kWidth, int... kPixels>
void fill(DepthwiseTileFn (&table)[2][DepthwiseKernels::kMaxPixels + 1], std::integer_sequence<int, kPixels...>) {
  ((table[0][kPixels + 1] = &special<kWidth, 1, kPixels + 1>), ...);
  ((table[1][kPixels + 1] = &special<kWidth, 2, kPixels + 1>), ...);
}

template <int... kPixels>
DepthwiseKernels make_table(std::integer_sequence<int, kPixels...> pixels) {
  DepthwiseKernels table = {};
  fill<3>(table.special[0], pixels);
  fill<5>(table.special[1], pixels);
  fill<7>(table.special[2], pixels);
  ((table.general[kPixels + 1] = &general<kPixels + 1>), ...);
  return table;
}

}  // namespace

const DepthwiseKernels& depthwise_table() {
  static const DepthwiseKernels table = make_table(std::make_integer_sequence<int, DepthwiseKernels::kMaxPixels>());
  return table;
}

}  // namespace epona::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {
HWY_EXPORT(depthwise_table);
const DepthwiseKernels& depthwise_kernels() { return HWY_DYNAMIC_DISPATCH(depthwise_table)(); }
}  // namespace epona
#endif
