#include "kernels/conv_int8_tile.h"

#include <algorithm>

#include "kernels/isa.h"

#define EPONA_WITH_INT_DOT
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv_int8_tile.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace epona::int8_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The form of A is that of gemm_int8_tile.cc: bytes (signed ones 128 higher) where four are multiplied at a time,
// 16 bits elsewhere.
#if HWY_TARGET <= HWY_AVX3_DL
constexpr bool kWide = false;
#else
constexpr bool kWide = true;
#endif
using D32 = hn::ScalableTag<int32_t>;
using D16 = hn::Repartition<int16_t, D32>;
using DU8 = hn::Repartition<uint8_t, D32>;
using DI8 = hn::Repartition<int8_t, D32>;

/// Copies n values of a run of the image; may write a vector's width behind them.
template <bool kSigned>
HWY_INLINE void copy_run(const uint8_t* in, int64_t n, uint8_t* out, const uint8_t* end) {
  if constexpr (kWide) {
    constexpr D16 d16;
    constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(d16));
    int16_t* to = reinterpret_cast<int16_t*>(out);
    int64_t i = 0;
    for (; i < n && end - (in + i) >= kStep; i += kStep) {
      if constexpr (kSigned)
        hn::StoreU(hn::PromoteTo(d16, hn::LoadU(hn::Rebind<int8_t, D16>(), reinterpret_cast<const int8_t*>(in) + i)),
                   d16, to + i);
      else
        hn::StoreU(hn::PromoteTo(d16, hn::LoadU(hn::Rebind<uint8_t, D16>(), in + i)), d16, to + i);
    }
    for (; i < n; ++i) to[i] = static_cast<int16_t>(kSigned ? static_cast<int8_t>(in[i]) : in[i]);
  } else {
    constexpr hn::CappedTag<uint8_t, 32> d;
    constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(d));
    constexpr uint8_t kFlip = kSigned ? 0x80 : 0;
    int64_t i = 0;
    for (; i < n && end - (in + i) >= kStep; i += kStep)
      hn::StoreU(hn::Xor(hn::LoadU(d, in + i), hn::Set(d, kFlip)), d, out + i);
    for (; i < n; ++i) out[i] = static_cast<uint8_t>(in[i] ^ kFlip);
  }
}

/// n padding values; may write a vector's width behind them.
HWY_INLINE void fill_run(int32_t zero, int64_t n, uint8_t* out) {
  if constexpr (kWide) {
    constexpr D16 d;
    for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::MaxLanes(d)))
      hn::StoreU(hn::Set(d, static_cast<int16_t>(zero)), d, reinterpret_cast<int16_t*>(out) + i);
  } else {
    constexpr hn::CappedTag<uint8_t, 32> d;
    for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::MaxLanes(d)))
      hn::StoreU(hn::Set(d, static_cast<uint8_t>(zero)), d, out + i);
  }
}

int32_t sum_row(const uint8_t* row, int64_t n) {
  auto sums = hn::Zero(D32());
  int64_t i = 0;
  int32_t total = 0;
  if constexpr (kWide) {
    constexpr D16 d;
    const int16_t* from = reinterpret_cast<const int16_t*>(row);
    constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(d));
    for (; i + kStep <= n; i += kStep)
      sums = hn::Add(sums, hn::WidenMulPairwiseAdd(D32(), hn::LoadU(d, from + i), hn::Set(d, int16_t{1})));
    for (; i < n; ++i) total += from[i];
  } else {
    constexpr DU8 d;
    constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(d));
    for (; i + kStep <= n; i += kStep)
      sums = hn::SumOfMulQuadAccumulate(D32(), hn::LoadU(d, row + i), hn::Set(DI8(), int8_t{1}), sums);
    for (; i < n; ++i) total += row[i];
  }
  return total + hn::ReduceSum(D32(), sums);
}

template <bool kSigned>
void gather_rows(const Gather& g, int64_t first, int64_t rows) {
  constexpr int64_t kBytes = kWide ? 2 : 1;
  const ConvImage& im = g.image;
  const int64_t taps = static_cast<int64_t>(g.kernel_h) * g.kernel_w, depth = taps * g.channels;
  const bool pointwise = taps == 1 && im.pad_top == 0 && im.pad_left == 0;
  if (pointwise && g.stride_h == 1 && g.stride_w == 1 && g.channels == g.pixel_stride && g.out_ld == depth * kBytes) {
    copy_run<kSigned>(g.x + first * depth, rows * depth, g.out, g.x_end);
  } else {
    const bool dense = g.dilation_w == 1 && g.channels == g.pixel_stride;
    const int64_t row_stride = im.in_w * g.pixel_stride;
    int64_t ox = first % im.out_w, oy = first / im.out_w % im.out_h, n = first / (im.out_w * im.out_h);
    uint8_t* out = g.out;
    for (int64_t r = 0; r < rows; ++r, out += g.out_ld) {
      uint8_t* to = out;
      const int64_t left = ox * g.stride_w - im.pad_left;
      int64_t kw0 = 0, kw1 = g.kernel_w;  // filter columns inside the image
      while (kw0 < kw1 && left + kw0 * g.dilation_w < 0) ++kw0;
      while (kw1 > kw0 && left + (kw1 - 1) * g.dilation_w >= im.in_w) --kw1;
      for (int kh = 0; kh < g.kernel_h; ++kh) {
        const int64_t y = oy * g.stride_h - im.pad_top + static_cast<int64_t>(kh) * g.dilation_h;
        if (y < 0 || y >= im.in_h || kw0 == kw1) {
          fill_run(g.zero, g.kernel_w * g.channels, to);
          to += g.kernel_w * g.channels * kBytes;
          continue;
        }
        const uint8_t* in = g.x + (n * im.in_h + y) * row_stride + (left + kw0 * g.dilation_w) * g.pixel_stride;
        if (kw0 > 0) fill_run(g.zero, kw0 * g.channels, to);
        to += kw0 * g.channels * kBytes;
        if (dense) {
          copy_run<kSigned>(in, (kw1 - kw0) * g.channels, to, g.x_end);
          to += (kw1 - kw0) * g.channels * kBytes;
        } else {
          for (int64_t kw = kw0; kw < kw1; ++kw, in += g.dilation_w * g.pixel_stride, to += g.channels * kBytes)
            copy_run<kSigned>(in, g.channels, to, g.x_end);
        }
        if (kw1 < g.kernel_w) fill_run(g.zero, (g.kernel_w - kw1) * g.channels, to);
        to += (g.kernel_w - kw1) * g.channels * kBytes;
      }
      for (; to < out + g.out_ld; ++to) *to = 0;  // up to a whole group of k
      if (++ox == im.out_w) {
        ox = 0;
        if (++oy == im.out_h) oy = 0, ++n;
      }
    }
  }
  if (g.row_sums)
    for (int64_t r = 0; r < rows; ++r) g.row_sums[r] = sum_row(g.out + r * g.out_ld, depth);
}

void gather(const Gather& g, int64_t row, int64_t rows) {
  if (g.x_signed)
    gather_rows<true>(g, row, rows);
  else
    gather_rows<false>(g, row, rows);
}

// Depthwise: taps two at a time, interleaved channel by channel, so that one instruction multiplies and adds both.
using DB16 = hn::CappedTag<int16_t, 16>;
using DB32 = hn::Repartition<int32_t, DB16>;
using DBF = hn::RebindToFloat<DB32>;
using VB16 = hn::Vec<DB16>;
using VB32 = hn::Vec<DB32>;
constexpr int64_t kBlock = static_cast<int64_t>(hn::MaxLanes(DB16()));

template <bool kSigned>
HWY_INLINE VB16 load_tap(const uint8_t* p) {
  if constexpr (kSigned)
    return hn::PromoteTo(DB16(), hn::LoadU(hn::Rebind<int8_t, DB16>(), reinterpret_cast<const int8_t*>(p)));
  else
    return hn::PromoteTo(DB16(), hn::LoadU(hn::Rebind<uint8_t, DB16>(), p));
}

HWY_INLINE VB32 round_block(VB32 sum, const float* scale, hn::Vec<DBF> low, hn::Vec<DBF> high) {
  const auto y = hn::Mul(hn::ConvertTo(DBF(), sum), hn::LoadU(DBF(), scale));
  return hn::NearestIntInRange(DB32(), hn::Min(high, hn::Max(low, y)));
}

/// Adds the products of two taps.
template <bool kSigned>
HWY_INLINE void add_pair(const uint8_t* a, const uint8_t* b, const int16_t* w, VB32& lo, VB32& hi) {
  constexpr DB16 d16;
  const VB16 xa = load_tap<kSigned>(a), xb = load_tap<kSigned>(b);
  lo = hn::Add(lo, hn::WidenMulPairwiseAdd(DB32(), hn::InterleaveLower(d16, xa, xb), hn::LoadU(d16, w)));
  hi = hn::Add(hi, hn::WidenMulPairwiseAdd(DB32(), hn::InterleaveUpper(d16, xa, xb), hn::LoadU(d16, w + kBlock)));
}

/// kTaps 0: any number, read at run time.
template <bool kSigned, int kTaps>
HWY_INLINE void depthwise_row(const DepthwiseInt8Row& d) {
  constexpr DB16 d16;
  constexpr DB32 d32;
  constexpr DBF df;
  const int taps = kTaps ? kTaps : d.taps_count, pairs = (taps + 1) / 2;
  const auto low = hn::Set(df, static_cast<float>(d.low - d.zero)),
             high = hn::Set(df, static_cast<float>(d.high - d.zero));
  const VB16 zero = hn::Set(d16, static_cast<int16_t>(d.zero));
  for (int64_t pixel = 0; pixel < d.pixels; ++pixel) {
    const uint8_t* const* in = d.taps;
    const int64_t ahead = pixel * d.step;
    uint8_t* const y = d.y + pixel * d.channels;
    const int16_t* w = d.w;
    int64_t index = 0;
    for (int64_t c0 = 0; c0 < d.channels; c0 += kBlock, index += kBlock) {
      const int64_t c = std::min(c0, d.channels - kBlock), at = c + ahead;  // the last block overlaps
      VB32 lo = hn::LoadU(d32, d.add + index), hi = hn::LoadU(d32, d.add + index + kBlock / 2);
      if constexpr (kTaps > 0) {
        HWY_UNROLL(8)
        for (int p = 0; p < kTaps / 2; ++p, w += 2 * kBlock)
          add_pair<kSigned>(in[2 * p] + at, in[2 * p + 1] + at, w, lo, hi);
        if constexpr (kTaps % 2 == 1) {
          add_pair<kSigned>(in[kTaps - 1] + at, in[kTaps - 1] + at, w, lo, hi);
          w += 2 * kBlock;
        }
      } else {
        for (int p = 0; p < pairs; ++p, w += 2 * kBlock)
          add_pair<kSigned>(in[2 * p] + at, in[std::min(2 * p + 1, taps - 1)] + at, w, lo, hi);
      }
      const VB16 q = hn::Add(hn::ReorderDemote2To(d16, round_block(lo, d.scale + index, low, high),
                                                  round_block(hi, d.scale + index + kBlock / 2, low, high)),
                             zero);
      if (d.y_signed)
        hn::StoreU(hn::DemoteTo(hn::Rebind<int8_t, DB16>(), q), hn::Rebind<int8_t, DB16>(),
                   reinterpret_cast<int8_t*>(y) + c);
      else
        hn::StoreU(hn::DemoteTo(hn::Rebind<uint8_t, DB16>(), q), hn::Rebind<uint8_t, DB16>(), y + c);
    }
  }
}

void depthwise(const DepthwiseInt8Row& d) {
  if (d.taps_count == 9)
    d.x_signed ? depthwise_row<true, 9>(d) : depthwise_row<false, 9>(d);
  else
    d.x_signed ? depthwise_row<true, 0>(d) : depthwise_row<false, 0>(d);
}

void depthwise_order(int* order) {
  constexpr DB16 d16;
  const VB16 channel = hn::Iota(d16, 0);
  alignas(64) int32_t lanes[kBlock];
  hn::StoreU(hn::BitCast(DB32(), hn::InterleaveLower(d16, channel, hn::Zero(d16))), DB32(), lanes);
  hn::StoreU(hn::BitCast(DB32(), hn::InterleaveUpper(d16, channel, hn::Zero(d16))), DB32(), lanes + kBlock / 2);
  for (int64_t i = 0; i < kBlock; ++i) order[i] = lanes[i];
}

const ConvInt8Kernels& conv_table() {
  static const ConvInt8Kernels k{gather, static_cast<int>(kBlock), depthwise_order, depthwise};
  return k;
}

}  // namespace epona::int8_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona::int8_detail {
HWY_EXPORT(conv_table);
const ConvInt8Kernels& conv_int8_kernels() {
  init_isa();
  return HWY_DYNAMIC_DISPATCH(conv_table)();
}
}  // namespace epona::int8_detail
#endif
