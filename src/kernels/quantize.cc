#include "kernels/quantize.h"

#include <algorithm>
#include <array>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

/// Scale and zero point of the lanes from element i on.
template <bool kEach>
struct Scales {
  const QuantScales& s;
  V scale;
  VI zero;

  explicit Scales(const QuantScales& scales)
      : s(scales), scale(hn::Set(D(), *scales.scale)), zero(hn::Set(DI(), scales.zero ? *scales.zero : 0)) {}
  template <class P>
  HWY_INLINE void at(int64_t i, P part) {
    if constexpr (kEach) {
      scale = load_or(hn::Set(D(), 1.0f), D(), s.scale + i, part);
      if (s.zero) zero = load(DI(), s.zero + i, part);
    }
  }
};

/// The code of a quotient, in 32 bits. Clamped before rounding, so that no float is out of the range of int32.
HWY_INLINE VI code(V x, V scale, VI zero, VI low, VI high) {
  const D d;
  V v = hn::Div(x, scale);
  v = hn::IfThenElseZero(hn::Eq(v, v), v);
  v = hn::Min(hn::ConvertTo(d, hn::Sub(high, zero)), hn::Max(hn::ConvertTo(d, hn::Sub(low, zero)), v));
  return hn::Add(hn::NearestInt(v), zero);
}

template <class T, bool kEach>
void quantize(const float* x, const QuantScales& scales, T* to, int64_t n) {
  const D d;
  const DI di;
  const hn::Repartition<int16_t, D> d16;
  const hn::Repartition<T, D> d8;
  const VI low = hn::Set(di, std::is_signed_v<T> ? -128 : 0), high = hn::Set(di, std::is_signed_v<T> ? 127 : 255);
  Scales<kEach> s(scales);
  const auto next = [&](int64_t i) HWY_ATTR {
    s.at(i, Whole());
    return code(hn::LoadU(d, x + i), s.scale, s.zero, low, high);
  };
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const VI a = next(i), b = next(i + kLanes), c = next(i + 2 * kLanes), e = next(i + 3 * kLanes);
    hn::StoreU(hn::OrderedDemote2To(d8, hn::OrderedDemote2To(d16, a, b), hn::OrderedDemote2To(d16, c, e)), d8, to + i);
  }
  const hn::Rebind<T, D> part8;
  for_vectors(d, n - i, [&](int64_t k, auto part) HWY_ATTR {
    s.at(i + k, part);
    const VI q = code(load(d, x + i + k, part), s.scale, s.zero, low, high);
    store(hn::DemoteTo(part8, q), part8, to + i + k, part);
  });
}

template <class T, bool kEach>
void dequantize(const T* q, const QuantScales& scales, float* to, int64_t n) {
  const D d;
  const DI di;
  const hn::Rebind<T, D> d8;
  Scales<kEach> s(scales);
  for_vectors(d, n, [&](int64_t i, auto part) HWY_ATTR {
    s.at(i, part);
    const VI x = hn::Sub(hn::PromoteTo(di, load(d8, q + i, part)), s.zero);
    store(hn::Mul(hn::ConvertTo(d, x), s.scale), d, to + i, part);
  });
}

void quantize_any(const float* x, const QuantScales& s, bool is_signed, void* to, int64_t n) {
  auto* u8 = static_cast<uint8_t*>(to);
  auto* s8 = static_cast<int8_t*>(to);
  if (is_signed)
    s.step ? quantize<int8_t, true>(x, s, s8, n) : quantize<int8_t, false>(x, s, s8, n);
  else
    s.step ? quantize<uint8_t, true>(x, s, u8, n) : quantize<uint8_t, false>(x, s, u8, n);
}

void dequantize_any(const void* q, const QuantScales& s, bool is_signed, float* to, int64_t n) {
  const auto* u8 = static_cast<const uint8_t*>(q);
  const auto* s8 = static_cast<const int8_t*>(q);
  if (is_signed)
    s.step ? dequantize<int8_t, true>(s8, s, to, n) : dequantize<int8_t, false>(s8, s, to, n);
  else
    s.step ? dequantize<uint8_t, true>(u8, s, to, n) : dequantize<uint8_t, false>(u8, s, to, n);
}

// A NaN in x leaves the bound as it is.
HWY_INLINE V lower(V x, V bound) { return hn::IfThenElse(hn::Lt(x, bound), x, bound); }
HWY_INLINE V higher(V x, V bound) { return hn::IfThenElse(hn::Gt(x, bound), x, bound); }

ValueRange range_of(const float* x, int64_t n) {
  const D d;
  V low[4], high[4];
  for (int j = 0; j < 4; ++j) low[j] = high[j] = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const V v = hn::LoadU(d, x + i + j * kLanes);
      low[j] = lower(v, low[j]);
      high[j] = higher(v, high[j]);
    }
  }
  for_vectors(d, n - i, [&](int64_t k, auto part) HWY_ATTR {
    const V v = load(d, x + i + k, part);
    low[0] = lower(v, low[0]);
    high[0] = higher(v, high[0]);
  });
  return {hn::ReduceMin(d, hn::Min(hn::Min(low[0], low[1]), hn::Min(low[2], low[3]))),
          hn::ReduceMax(d, hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3])))};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {
namespace {
HWY_EXPORT(quantize_any);
HWY_EXPORT(dequantize_any);
HWY_EXPORT(range_of);
}  // namespace

void quantize_bytes(const float* x, const QuantScales& scales, bool is_signed, void* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(quantize_any)(x, scales, is_signed, to, n);
}

void dequantize_bytes(const void* q, const QuantScales& scales, bool is_signed, float* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(dequantize_any)(q, scales, is_signed, to, n);
}

ValueRange value_range(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(range_of)(x, n); }

ValueRange value_range(const float* x, int64_t n, ThreadPool& pool) {
  constexpr int64_t kLeast = 32 * 1024;  // elements worth a hand-over
  std::array<ValueRange, 64> parts;
  const int64_t count = std::min({n / kLeast, static_cast<int64_t>(pool.threads()), std::ssize(parts)});
  if (count <= 1) return value_range(x, n);
  pool.run(count, [&](int64_t i) {
    const int64_t begin = n * i / count;
    parts[static_cast<size_t>(i)] = value_range(x + begin, n * (i + 1) / count - begin);
  });
  for (int64_t i = 1; i < count; ++i) {
    parts[0].low = std::min(parts[0].low, parts[static_cast<size_t>(i)].low);
    parts[0].high = std::max(parts[0].high, parts[static_cast<size_t>(i)].high);
  }
  return parts[0];
}

DynamicScale dynamic_scale(const ValueRange& range) {
  const float scale = range.high == range.low ? 1.0f : (range.high - range.low) / 255.0f;
  const float from = -range.low / scale;
  uint8_t zero;
  const float one = 1.0f;
  quantize_bytes(&from, {.scale = &one}, false, &zero, 1);
  return {scale, zero};
}
}  // namespace epona
#endif
