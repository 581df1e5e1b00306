#include "kernels/byte_image.h"

#include <algorithm>
#include <cstring>

#include "kernels/parallel.h"
#include "kernels/pool_span.h"
#include "kernels/transpose2d.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/byte_image.cc"
#include "kernels/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef EPONA_BYTE_IMAGE_TYPES
#define EPONA_BYTE_IMAGE_TYPES
namespace epona::byte_detail {
/// The part of a window inside the image.
struct Taps {
  const uint8_t* first;
  int64_t rows, columns, row_step, column_step;  ///< steps in bytes
  float scale;                                   ///< of the sum
};
}  // namespace epona::byte_detail
#endif

HWY_BEFORE_NAMESPACE();
namespace epona::byte_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using DF = hn::ScalableTag<float>;
using D = hn::RebindToSigned<DF>;
using D16 = hn::Repartition<int16_t, D>;
using V = hn::Vec<D>;
using VF = hn::Vec<DF>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

template <class T>
HWY_INLINE V load(const uint8_t* p) {
  return hn::PromoteTo(D(), hn::LoadU(hn::Rebind<T, D>(), reinterpret_cast<const T*>(p)));
}

/// Rounds, adds the zero point and clamps: the bounds are those before it is added.
struct Requantize {
  VF low, high;
  V zero;
  Requantize(int32_t l, int32_t h, int32_t z)
      : low(hn::Set(DF(), static_cast<float>(l - z))),
        high(hn::Set(DF(), static_cast<float>(h - z))),
        zero(hn::Set(D(), z)) {}
  HWY_INLINE V operator()(VF x) const {
    return hn::Add(hn::NearestIntInRange(D(), hn::Min(high, hn::Max(low, x))), zero);
  }
  HWY_INLINE void store(V q, uint8_t* to) const {
    const hn::Rebind<uint8_t, D> d8;
    hn::StoreU(hn::TruncateTo(d8, hn::BitCast(hn::RebindToUnsigned<D>(), q)), d8, to);
  }
};

template <class A, class B, bool kProduct>
HWY_INLINE VF sum_of(const uint8_t* a, const uint8_t* b, V a_zero, V b_zero, VF a_scale, VF b_scale, VF y_scale) {
  const VF fa = hn::ConvertTo(DF(), hn::Sub(load<A>(a), a_zero)), fb = hn::ConvertTo(DF(), hn::Sub(load<B>(b), b_zero));
  const VF x = hn::Mul(fa, a_scale), y = hn::Mul(fb, b_scale);
  return hn::Div(kProduct ? hn::Mul(x, y) : hn::Add(x, y), y_scale);
}

template <class A, class B, bool kProduct>
void combine(const ByteSum& s, int64_t begin, int64_t end) {
  constexpr DF df;
  constexpr D d;
  const uint8_t *a = static_cast<const uint8_t*>(s.a), *b = static_cast<const uint8_t*>(s.b);
  uint8_t* y = static_cast<uint8_t*>(s.y);
  const Requantize requantize(s.low, s.high, s.y_zero);
  const V a_zero = hn::Set(d, s.a_zero), b_zero = hn::Set(d, s.b_zero);
  const VF a_scale = hn::Set(df, s.a_scale), b_scale = hn::Set(df, s.b_scale);
  const VF y_scale = hn::Set(df, s.y_scale);
  int64_t i = begin;
  for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
    const V q0 = requantize(sum_of<A, B, kProduct>(a + i, b + i, a_zero, b_zero, a_scale, b_scale, y_scale));
    const V q1 =
        requantize(sum_of<A, B, kProduct>(a + i + kLanes, b + i + kLanes, a_zero, b_zero, a_scale, b_scale, y_scale));
    const auto q = hn::OrderedDemote2To(D16(), q0, q1);
    if (s.y_signed)
      hn::StoreU(hn::DemoteTo(hn::Rebind<int8_t, D16>(), q), hn::Rebind<int8_t, D16>(),
                 reinterpret_cast<int8_t*>(y) + i);
    else
      hn::StoreU(hn::DemoteTo(hn::Rebind<uint8_t, D16>(), q), hn::Rebind<uint8_t, D16>(), y + i);
  }
  for (; i < end; i += kLanes) {
    const size_t n = static_cast<size_t>(std::min(kLanes, end - i));
    uint8_t ta[kLanes] = {}, tb[kLanes] = {}, ty[kLanes];
    std::memcpy(ta, a + i, n);
    std::memcpy(tb, b + i, n);
    requantize.store(requantize(sum_of<A, B, kProduct>(ta, tb, a_zero, b_zero, a_scale, b_scale, y_scale)), ty);
    std::memcpy(y + i, ty, n);
  }
}

template <class A, class B>
void add_range(const ByteSum& s, int64_t begin, int64_t end) {
  s.product ? combine<A, B, true>(s, begin, end) : combine<A, B, false>(s, begin, end);
}

void add(const ByteSum& s, int64_t begin, int64_t end) {
  if (s.a_signed)
    s.b_signed ? add_range<int8_t, int8_t>(s, begin, end) : add_range<int8_t, uint8_t>(s, begin, end);
  else
    s.b_signed ? add_range<uint8_t, int8_t>(s, begin, end) : add_range<uint8_t, uint8_t>(s, begin, end);
}

template <class T>
void max_pixel(const Taps& w, int64_t channels, T* y) {
  constexpr hn::CappedTag<T, 32> d;
  constexpr int64_t kBytes = static_cast<int64_t>(hn::MaxLanes(d));
  for (int64_t c = 0; c < channels; c += kBytes) {
    const size_t n = static_cast<size_t>(std::min(kBytes, channels - c));
    const bool whole = n == static_cast<size_t>(kBytes);
    auto best = hn::Set(d, hwy::LowestValue<T>());
    for (int64_t i = 0; i < w.rows; ++i)
      for (int64_t j = 0; j < w.columns; ++j) {
        const T* from = reinterpret_cast<const T*>(w.first + i * w.row_step + j * w.column_step) + c;
        best = hn::Max(best, whole ? hn::LoadU(d, from) : hn::LoadN(d, from, n));
      }
    if (whole)
      hn::StoreU(best, d, y + c);
    else
      hn::StoreN(best, d, y + c, n);
  }
}

template <class T>
void mean_pixel(const Taps& w, const ByteMean& m, int64_t channels, uint8_t* y) {
  constexpr D d;
  const Requantize requantize(m.low, m.high, m.y_zero);
  const V zeros = hn::Set(d, static_cast<int32_t>(w.rows * w.columns) * m.x_zero);
  const VF scale = hn::Set(DF(), w.scale);
  for (int64_t c = 0; c < channels; c += kLanes) {
    const size_t n = static_cast<size_t>(std::min(kLanes, channels - c));
    const bool whole = n == static_cast<size_t>(kLanes);
    V sum = hn::Zero(d);
    uint8_t part[kLanes] = {};
    for (int64_t i = 0; i < w.rows; ++i)
      for (int64_t j = 0; j < w.columns; ++j) {
        const uint8_t* from = w.first + i * w.row_step + j * w.column_step + c;
        if (!whole) from = static_cast<const uint8_t*>(std::memcpy(part, from, n));
        sum = hn::Add(sum, load<T>(from));
      }
    requantize.store(requantize(hn::Mul(hn::ConvertTo(DF(), hn::Sub(sum, zeros)), scale)), part);
    std::memcpy(y + c, part, n);
  }
}

void max_pixels(const Taps* windows, int64_t count, bool is_signed, int64_t channels, uint8_t* y) {
  for (int64_t i = 0; i < count; ++i)
    is_signed ? max_pixel<int8_t>(windows[i], channels, reinterpret_cast<int8_t*>(y) + i * channels)
              : max_pixel<uint8_t>(windows[i], channels, y + i * channels);
}

void mean_pixels(const Taps* windows, int64_t count, bool is_signed, const ByteMean& m, int64_t channels, uint8_t* y) {
  for (int64_t i = 0; i < count; ++i)
    is_signed ? mean_pixel<int8_t>(windows[i], m, channels, y + i * channels)
              : mean_pixel<uint8_t>(windows[i], m, channels, y + i * channels);
}

/// n floats to bytes.
void quantize(const ByteQuantization& q, const float* x, int64_t n, uint8_t* y) {
  constexpr DF df;
  const Requantize requantize(q.low, q.high, q.zero);
  const VF scale = hn::Set(df, q.scale);
  for (int64_t i = 0; i < n; i += kLanes) {
    const size_t count = static_cast<size_t>(std::min(kLanes, n - i));
    const bool whole = count == static_cast<size_t>(kLanes);
    VF v = hn::Div(whole ? hn::LoadU(df, x + i) : hn::LoadN(df, x + i, count), scale);
    v = hn::IfThenZeroElse(hn::IsNaN(v), v);
    uint8_t bytes[kLanes];
    requantize.store(requantize(v), whole ? y + i : bytes);
    if (!whole) std::memcpy(y + i, bytes, count);
  }
}

/// Three planes of bytes side by side.
void interleave3(const uint8_t* planes, int64_t stride, int64_t n, uint8_t* y) {
  constexpr hn::CappedTag<uint8_t, 16> d;
  constexpr int64_t kBytes = static_cast<int64_t>(hn::MaxLanes(d));
  int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes)
    hn::StoreInterleaved3(hn::LoadU(d, planes + i), hn::LoadU(d, planes + stride + i),
                          hn::LoadU(d, planes + 2 * stride + i), d, y + 3 * i);
  for (; i < n; ++i)
    for (int64_t c = 0; c < 3; ++c) y[3 * i + c] = planes[c * stride + i];
}

}  // namespace epona::byte_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {
namespace byte_detail {
HWY_EXPORT(add);
HWY_EXPORT(max_pixels);
HWY_EXPORT(mean_pixels);
HWY_EXPORT(quantize);
HWY_EXPORT(interleave3);
}  // namespace byte_detail

namespace {

using namespace byte_detail;

/// Calls fn(windows, count, first output pixel) for runs of windows in one row.
template <class Fn>
void for_each_window(const BytePooling& p, bool include_pad, float scale, const uint8_t* x, ThreadPool& pool, Fn&& fn) {
  const double ns = 0.05 * p.kernel_h * p.kernel_w * static_cast<double>(p.out_w * p.channels) + 20;
  pool.parallel_for(p.planes * p.out_h, ns, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBatch = 32;
    Taps windows[kBatch];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / p.out_h;
      const uint8_t* image = x + n * p.in_h * p.in_w * p.channels;
      const PoolSpan rows(i % p.out_h, p.stride_h, p.kernel_h, p.dilation_h, p.pad_top, p.pad_bottom, p.in_h);
      for (int64_t first = 0; first < p.out_w; first += kBatch) {
        const int64_t count = std::min(kBatch, p.out_w - first);
        for (int64_t j = 0; j < count; ++j) {
          const PoolSpan columns(first + j, p.stride_w, p.kernel_w, p.dilation_w, p.pad_left, p.pad_right, p.in_w);
          const int64_t divisor = include_pad ? rows.covered * columns.covered : rows.count * columns.count;
          const bool any = rows.count > 0 && columns.count > 0;
          windows[j] = {any ? image + (rows.begin * p.in_w + columns.begin) * p.channels : image,
                        any ? rows.count : 0,
                        any ? columns.count : 0,
                        p.dilation_h * p.in_w * p.channels,
                        p.dilation_w * p.channels,
                        divisor > 0 ? scale / static_cast<float>(divisor) : 0.0f};
        }
        fn(windows, count, i * p.out_w + first);
      }
    }
  });
}

}  // namespace

void add_bytes(const ByteSum& sum, ThreadPool& pool) {
  pool.parallel_for(sum.size, 0.2, [&](int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(add)(sum, begin, end); });
}

void max_pool_bytes(const BytePooling& p, const void* x, void* y, ThreadPool& pool) {
  uint8_t* to = static_cast<uint8_t*>(y);
  for_each_window(p, false, 1, static_cast<const uint8_t*>(x), pool,
                  [&](const Taps* windows, int64_t count, int64_t pixel) {
                    HWY_DYNAMIC_DISPATCH(max_pixels)(windows, count, p.x_signed, p.channels, to + pixel * p.channels);
                  });
}

void average_pool_bytes(const BytePooling& p, const ByteMean& mean, const void* x, void* y, ThreadPool& pool) {
  uint8_t* to = static_cast<uint8_t*>(y);
  for_each_window(p, mean.include_pad, mean.scale, static_cast<const uint8_t*>(x), pool,
                  [&](const Taps* windows, int64_t count, int64_t pixel) {
                    HWY_DYNAMIC_DISPATCH(mean_pixels)(windows, count, p.x_signed, mean, p.channels,
                                                      to + pixel * p.channels);
                  });
}

void quantize_to_nhwc(const ByteQuantization& q, int64_t batch, int64_t channels, int64_t pixels, const float* x,
                      void* y, ThreadPool& pool) {
  constexpr int64_t kPixels = 256, kChannels = 16;
  const int64_t runs = (pixels + kPixels - 1) / kPixels;
  parallel_items(pool, batch * runs, 0.4 * static_cast<double>(channels * kPixels), [&](int, int64_t item) {
    const int64_t n = item / runs, first = item % runs * kPixels, count = std::min(kPixels, pixels - first);
    uint8_t planes[kChannels * kPixels];
    uint8_t* to = static_cast<uint8_t*>(y) + (n * pixels + first) * channels;
    for (int64_t c0 = 0; c0 < channels; c0 += kChannels) {
      const int64_t some = std::min(kChannels, channels - c0);
      for (int64_t c = 0; c < some; ++c)
        HWY_DYNAMIC_DISPATCH(quantize)(q, x + (n * channels + c0 + c) * pixels + first, count, planes + c * kPixels);
      if (channels == 1)
        std::memcpy(to, planes, static_cast<size_t>(count));
      else if (channels == 3)
        HWY_DYNAMIC_DISPATCH(interleave3)(planes, kPixels, count, to);
      else
        transpose2d(1, count, some, reinterpret_cast<const char*>(planes), kPixels, reinterpret_cast<char*>(to + c0),
                    channels);
    }
  });
}

}  // namespace epona
#endif
