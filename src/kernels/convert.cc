#include "kernels/convert.h"

#include <cstring>

#include "kernels/targets.h"
#include "base/error.h"
#include "base/float16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Runs fn(i) for whole vectors and rest(i) for the elements after them.
#define EPONA_CONVERT_LOOP(vector_code, scalar_code) \
  int64_t i = 0;                                     \
  for (; i + lanes <= n; i += lanes) {               \
    vector_code;                                     \
  }                                                  \
  for (; i < n; ++i) {                               \
    scalar_code;                                     \
  }

void to_float(DataType type, const void* from, float* to, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  switch (type) {
    case DataType::float32:
      if (from != to) std::memcpy(to, from, static_cast<size_t>(n) * 4);
      return;
    case DataType::float16: {
      const auto* x = static_cast<const uint16_t*>(from);
#if HWY_TARGET != HWY_SSE2  // emulated there, slower than the scalar code and wrong for some NaN
      const hn::Rebind<hwy::float16_t, decltype(d)> dh;
      const auto* half = reinterpret_cast<const hwy::float16_t*>(x);
      EPONA_CONVERT_LOOP(hn::StoreU(hn::PromoteTo(d, hn::LoadU(dh, half + i)), d, to + i),
                         to[i] = detail::half_to_float(x[i]))
#else
      for (int64_t i = 0; i < n; ++i) to[i] = detail::half_to_float(x[i]);
#endif
      return;
    }
    case DataType::bfloat16: {
      const auto* x = static_cast<const uint16_t*>(from);
      const hn::Rebind<uint16_t, decltype(d)> dh;
      const hn::RebindToUnsigned<decltype(d)> du;
      EPONA_CONVERT_LOOP(
          hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, x + i)))), d, to + i),
          to[i] = BFloat16::from_bits(x[i]))
      return;
    }
    case DataType::int32: {
      const auto* x = static_cast<const int32_t*>(from);
      EPONA_CONVERT_LOOP(hn::StoreU(hn::ConvertTo(d, hn::LoadU(di, x + i)), d, to + i),
                         to[i] = static_cast<float>(x[i]))
      return;
    }
    case DataType::int8: {
      const auto* x = static_cast<const int8_t*>(from);
      const hn::Rebind<int8_t, decltype(d)> db;
      EPONA_CONVERT_LOOP(hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, x + i))), d, to + i), to[i] = x[i])
      return;
    }
    case DataType::uint8:
    case DataType::boolean: {
      const auto* x = static_cast<const uint8_t*>(from);
      const hn::Rebind<uint8_t, decltype(d)> db;
      EPONA_CONVERT_LOOP(hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, x + i))), d, to + i), to[i] = x[i])
      return;
    }
    default:
      fail(Code::not_implemented, "no vector conversion from ", type);
  }
}

int32_t truncate_like_x86(float x) {
  return x >= -2147483648.0f && x < 2147483648.0f ? static_cast<int32_t>(x) : INT32_MIN;
}

void from_float(DataType type, const float* from, void* to, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::RebindToUnsigned<decltype(d)> du;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  switch (type) {
    case DataType::float32:
      if (from != to) std::memcpy(to, from, static_cast<size_t>(n) * 4);
      return;
    case DataType::float16: {
      auto* y = static_cast<uint16_t*>(to);
#if HWY_TARGET != HWY_SSE2
      const hn::Rebind<hwy::float16_t, decltype(d)> dh;
      auto* half = reinterpret_cast<hwy::float16_t*>(y);
      EPONA_CONVERT_LOOP(hn::StoreU(hn::DemoteTo(dh, hn::LoadU(d, from + i)), dh, half + i),
                         y[i] = detail::float_to_half(from[i]))
#else
      for (int64_t i = 0; i < n; ++i) y[i] = detail::float_to_half(from[i]);
#endif
      return;
    }
    case DataType::bfloat16: {
      auto* y = static_cast<uint16_t*>(to);
      const hn::Rebind<uint16_t, decltype(d)> dh;
      EPONA_CONVERT_LOOP(
          {
            const auto v = hn::LoadU(d, from + i);
            const auto bits = hn::BitCast(du, v);
            const auto even = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
            const auto rounded = hn::Add(bits, hn::Add(hn::Set(du, 0x7fff), even));
            const auto kept =
                hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), hn::Or(bits, hn::Set(du, 0x400000)), rounded);
            hn::StoreU(hn::TruncateTo(dh, hn::ShiftRight<16>(kept)), dh, y + i);
          },
          y[i] = detail::float_to_bfloat(from[i]))
      return;
    }
    case DataType::int32: {
      auto* y = static_cast<int32_t*>(to);
      EPONA_CONVERT_LOOP(hn::StoreU(hn::ConvertInRangeTo(di, hn::LoadU(d, from + i)), di, y + i),
                         y[i] = truncate_like_x86(from[i]))
      return;
    }
    case DataType::int8:
    case DataType::uint8: {
      auto* y = static_cast<uint8_t*>(to);
      const hn::Rebind<uint8_t, decltype(d)> db;
      EPONA_CONVERT_LOOP(
          hn::StoreU(hn::TruncateTo(db, hn::BitCast(du, hn::ConvertInRangeTo(di, hn::LoadU(d, from + i)))), db, y + i),
          y[i] = static_cast<uint8_t>(truncate_like_x86(from[i])))
      return;
    }
    case DataType::boolean: {
      auto* y = static_cast<uint8_t*>(to);
      const hn::Rebind<uint8_t, decltype(d)> db;
      const auto one = hn::Set(du, 1);
      EPONA_CONVERT_LOOP(
          hn::StoreU(hn::TruncateTo(
                         db, hn::IfThenZeroElse(hn::RebindMask(du, hn::Eq(hn::LoadU(d, from + i), hn::Zero(d))), one)),
                     db, y + i),
          y[i] = from[i] != 0)
      return;
    }
    default:
      fail(Code::not_implemented, "no vector conversion to ", type);
  }
}

#undef EPONA_CONVERT_LOOP

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {

HWY_EXPORT(to_float);
HWY_EXPORT(from_float);

bool converts_with_float(DataType type) {
  switch (type) {
    case DataType::float32:
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::int8:
    case DataType::uint8:
    case DataType::int32:
    case DataType::boolean:
      return true;
    default:
      return false;
  }
}

void to_float(DataType type, const void* from, float* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(to_float)(type, from, to, n);
}

void from_float(DataType type, const float* from, void* to, int64_t n) {
  HWY_DYNAMIC_DISPATCH(from_float)(type, from, to, n);
}

}  // namespace epona
#endif  // HWY_ONCE
