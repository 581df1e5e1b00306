// g++ 12 stores sums of integer dot products to the stack in every iteration unless -fno-tree-pre is given: the build
// gives it to files named *int8*.cc.
#include "kernels/gemm_int8_tile.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/gemm_int8.h"
#include "kernels/isa.h"

#define EPONA_WITH_INT_DOT
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_int8_tile.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace epona::int8_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<int32_t>;
using DF = hn::RebindToFloat<D>;
using D16 = hn::Repartition<int16_t, D>;
using DU8 = hn::Repartition<uint8_t, D>;
using DI8 = hn::Repartition<int8_t, D>;
using V = hn::Vec<D>;
using VF = hn::Vec<DF>;

#if HWY_TARGET <= HWY_AVX3
constexpr int kRows = 12;
#else
constexpr int kRows = 6;
#endif
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

// Schemes of multiplication: values of k in a group, A as packed (bytes, or 16 bits), one step of the sum.

#if HWY_TARGET <= HWY_AVX3_DL
/// A dot-product instruction: u8 x s8, four at a time, exact.
struct Dot {
  static constexpr int kGroup = 4;
  static HWY_INLINE auto load_b(const int8_t* at) { return hn::LoadU(DI8(), at); }
  template <class B>
  static HWY_INLINE V multiply_add(V a, B b, V sum) {
    return hn::SumOfMulQuadAccumulate(D(), hn::BitCast(DU8(), a), b, sum);
  }
};
using Exact = Dot;
#else
/// Both sides are widened to 16 bits and multiplied two at a time.
struct Wide {
  static constexpr int kGroup = 2;
  static HWY_INLINE auto load_b(const int8_t* at) {
    return hn::PromoteTo(D16(), hn::LoadU(hn::Rebind<int8_t, D16>(), at));
  }
  template <class B>
  static HWY_INLINE V multiply_add(V a, B b, V sum) {
    return hn::Add(sum, hn::WidenMulPairwiseAdd(D(), hn::BitCast(D16(), a), b));
  }
};
using Exact = Wide;
#endif

#undef EPONA_INT8_PAIRS
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define EPONA_INT8_PAIRS 1
/// u8 x s8, the sum of two in 16 bits: exact for B whose pairs split_pairs() has made small enough, and 3 instructions
/// for 4 products a lane where Wide takes 4.
struct Pairs {
  static constexpr int kGroup = 4;
  static HWY_INLINE auto load_b(const int8_t* at) { return hn::LoadU(DI8(), at); }
  template <class B>
  static HWY_INLINE V multiply_add(V a, B b, V sum) {
    const auto pairs = hn::SatWidenMulPairwiseAdd(D16(), hn::BitCast(DU8(), a), b);
    return hn::Add(sum, hn::WidenMulPairwiseAdd(D(), pairs, hn::Set(D16(), 1)));
  }
};
#else
#define EPONA_INT8_PAIRS 0
#endif

HWY_INLINE V broadcast4(const uint8_t* p) {
  int32_t group;
  std::memcpy(&group, p, 4);
  return hn::Set(D(), group);
}

/// Vector c of a row of B that spans several panels, in the form that multiply_add takes.
template <class S>
HWY_INLINE auto load_b(const int8_t* b, int64_t panel_stride, int c, int vectors) {
  return S::load_b(b + c / vectors * panel_stride + c % vectors * kLanes * S::kGroup);
}

/// Adds the products of kMr rows with kPanels panels to `sum`.
template <class S, int kMr, int kNv, int kPanels>
HWY_INLINE void add_products(const uint8_t* rows, int64_t lda, const int8_t* HWY_RESTRICT b, int64_t panel_stride,
                             int64_t groups, V (&sum)[kMr][kNv * kPanels]) {
  constexpr int kCols = kNv * kPanels;
  const uint8_t* HWY_RESTRICT a[kMr];
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) a[r] = rows + r * lda;
  const int64_t bytes = groups * 4;
  for (int64_t i = 0; i < bytes; i += 4) {
    if constexpr (kMr == 1) {  // B is used as it comes: registers are short when many panels are read
      const V x = broadcast4(a[0] + i);
      HWY_UNROLL(16)
      for (int c = 0; c < kCols; ++c) sum[0][c] = S::multiply_add(x, load_b<S>(b, panel_stride, c, kNv), sum[0][c]);
    } else {
      decltype(S::load_b(b)) row[kCols];
      HWY_UNROLL(16)
      for (int c = 0; c < kCols; ++c) row[c] = load_b<S>(b, panel_stride, c, kNv);
      HWY_UNROLL(16)
      for (int r = 0; r < kMr; ++r) {
        const V x = broadcast4(a[r] + i);
        HWY_UNROLL(16)
        for (int c = 0; c < kCols; ++c) sum[r][c] = S::multiply_add(x, row[c], sum[r][c]);
      }
    }
    b += kNv * kLanes * S::kGroup;
  }
}

template <class S, int kMr, int kNv, int kPanels>
HWY_NOINLINE void tile(const Tile& t) {
  constexpr D d;
  constexpr int kCols = kNv * kPanels;
  V sum[kMr][kCols];
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) {
    HWY_UNROLL(16)
    for (int c = 0; c < kCols; ++c) sum[r][c] = hn::Zero(d);
  }
  add_products<S, kMr, kNv, kPanels>(t.a, t.lda, t.b, t.panel_stride, t.groups, sum);
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) {
    HWY_UNROLL(16)
    for (int c = 0; c < kCols; ++c) hn::StoreU(sum[r][c], d, t.sums + r * t.ld + c * kLanes);
  }
}

#if HWY_TARGET > HWY_AVX3_DL
/// As tile(), B of 16 bits.
template <int kMr>
HWY_NOINLINE void wide_tile(const Tile& t) {
  constexpr D d;
  constexpr D16 d16;
  V sum[kMr][2];
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) sum[r][0] = sum[r][1] = hn::Zero(d);
  const uint8_t* HWY_RESTRICT a[kMr];
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) a[r] = t.a + r * t.lda;
  const int16_t* HWY_RESTRICT b = reinterpret_cast<const int16_t*>(t.b);
  const int64_t bytes = t.groups * 4;
  for (int64_t i = 0; i < bytes; i += 4, b += 4 * kLanes) {
    const auto b0 = hn::LoadU(d16, b), b1 = hn::LoadU(d16, b + 2 * kLanes);
    HWY_UNROLL(16)
    for (int r = 0; r < kMr; ++r) {
      const V x = broadcast4(a[r] + i);
      sum[r][0] = Wide::multiply_add(x, b0, sum[r][0]);
      sum[r][1] = Wide::multiply_add(x, b1, sum[r][1]);
    }
  }
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) {
    hn::StoreU(sum[r][0], d, t.sums + r * t.ld);
    hn::StoreU(sum[r][1], d, t.sums + r * t.ld + kLanes);
  }
}
#endif

template <int kABytes>
void pack_a(int64_t rows, int64_t k, const uint8_t* a, int64_t lda, bool is_signed, uint8_t* out, int64_t out_ld,
            int32_t* row_sums) {
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* in = a + r * lda;
    uint8_t* to = out + r * out_ld;
    int32_t total = 0;
    int64_t i = 0;
    if constexpr (kABytes == 2) {
      constexpr D16 d16;
      constexpr hn::Rebind<uint8_t, D16> du;
      constexpr hn::Rebind<int8_t, D16> ds;
      constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(d16));
      int16_t* to16 = reinterpret_cast<int16_t*>(to);
      auto sums = hn::Zero(D());
      const auto ones = hn::Set(d16, 1);
      for (; i + kStep <= k; i += kStep) {
        const auto wide = is_signed ? hn::PromoteTo(d16, hn::LoadU(ds, reinterpret_cast<const int8_t*>(in) + i))
                                    : hn::PromoteTo(d16, hn::LoadU(du, in + i));
        hn::StoreU(wide, d16, to16 + i);
        sums = hn::Add(sums, hn::WidenMulPairwiseAdd(D(), wide, ones));
      }
      total = hn::ReduceSum(D(), sums);
      for (; i < k; ++i) {
        to16[i] = static_cast<int16_t>(is_signed ? static_cast<int8_t>(in[i]) : in[i]);
        total += to16[i];
      }
    } else {
      constexpr DU8 du;
      constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(du));
      const uint8_t flip = is_signed ? 0x80 : 0;
      const auto flips = hn::Set(du, flip);
      auto sums = hn::Zero(D());
      const auto ones = hn::Set(DI8(), 1);
      for (; i + kStep <= k; i += kStep) {
        const auto x = hn::Xor(hn::LoadU(du, in + i), flips);
        hn::StoreU(x, du, to + i);
        sums = hn::SumOfMulQuadAccumulate(D(), x, ones, sums);
      }
      total = hn::ReduceSum(D(), sums);
      for (; i < k; ++i) {
        to[i] = static_cast<uint8_t>(in[i] ^ flip);
        total += to[i];
      }
    }
    std::memset(to + k * kABytes, 0, static_cast<size_t>(out_ld - k * kABytes));
    row_sums[r] = total;
  }
}

/// One group of rows of B, 16 columns.
template <int kGroup>
HWY_INLINE void pack_b_block(const uint8_t* b, int64_t ldb, uint8_t flip, int8_t* out) {
  constexpr hn::Full128<uint8_t> d;
  constexpr hn::Full128<uint16_t> d16;
  const auto row = [&](int64_t i) HWY_ATTR { return hn::Xor(hn::LoadU(d, b + i * ldb), hn::Set(d, flip)); };
  uint8_t* const to = reinterpret_cast<uint8_t*>(out);
  const auto r0 = row(0), r1 = row(1);
  const auto a0 = hn::InterleaveLower(d, r0, r1), a1 = hn::InterleaveUpper(d, r0, r1);
  if constexpr (kGroup == 2) {
    hn::StoreU(a0, d, to);
    hn::StoreU(a1, d, to + 16);
  } else {
    const auto r2 = row(2), r3 = row(3);
    const auto b0 = hn::InterleaveLower(d, r2, r3), b1 = hn::InterleaveUpper(d, r2, r3);
    const auto store = [&](auto x, auto y, uint8_t* at) HWY_ATTR {
      const auto x16 = hn::BitCast(d16, x), y16 = hn::BitCast(d16, y);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d16, x16, y16)), d, at);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d16, x16, y16)), d, at + 16);
    };
    store(a0, b0, to);
    store(a1, b1, to + 32);
  }
}

/// One panel from rows of B transposed: groups of a column's values move together, so that it is a transposition of
/// elements of kGroup bytes.
template <int kGroup>
void pack_b_transposed(int64_t k, int64_t columns, int64_t width, const uint8_t* b, int64_t ldb, uint8_t flip,
                       int8_t* out) {
  using Group = std::conditional_t<kGroup == 4, uint32_t, uint16_t>;
  const Group flips = static_cast<Group>(flip * 0x01010101u);
  const int64_t whole = k / kGroup;
  // Blocks of one cache line of each column: the writes of a block stay in the first cache.
  constexpr int64_t kBlock = 64 / kGroup;
  for (int64_t g0 = 0; g0 < whole; g0 += kBlock) {
    const int64_t g1 = std::min(whole, g0 + kBlock);
    for (int64_t c = 0; c < columns; ++c) {
      const uint8_t* from = b + c * ldb + g0 * kGroup;
      int8_t* to = out + (g0 * width + c) * kGroup;
      for (int64_t g = g0; g < g1; ++g, from += kGroup, to += width * kGroup) {
        Group group;
        std::memcpy(&group, from, kGroup);
        group = static_cast<Group>(group ^ flips);
        std::memcpy(to, &group, kGroup);
      }
    }
  }
  for (int64_t c = 0; c < columns && whole * kGroup < k; ++c)
    for (int64_t i = whole * kGroup; i < k; ++i)
      out[whole * width * kGroup + c * kGroup + i % kGroup] = static_cast<int8_t>(b[c * ldb + i] ^ flip);
}

template <class S>
void pack_b(int64_t k, int64_t columns, int64_t width, const uint8_t* b, int64_t ldb, bool trans, bool is_signed,
            int8_t* out, int32_t* column_sums) {
  constexpr int kGroup = S::kGroup;
  const uint8_t flip = is_signed ? 0 : 0x80;
  if (trans) {
    const int64_t groups = (k + kGroup - 1) / kGroup;
    if (columns < width)
      std::memset(out, 0, static_cast<size_t>(groups * width * kGroup));
    else if (k % kGroup != 0)
      std::memset(out + (groups - 1) * width * kGroup, 0, static_cast<size_t>(width * kGroup));
    pack_b_transposed<kGroup>(k, columns, width, b, ldb, flip, out);
  }
  for (int64_t k0 = 0; k0 < k && !trans; k0 += kGroup) {
    const int64_t count = std::min<int64_t>(kGroup, k - k0);
    int8_t* group = out + k0 * width;
    if (count < kGroup || columns < width) std::memset(group, 0, static_cast<size_t>(width * kGroup));
    int64_t first = 0;
    if (count == kGroup)
      for (; first + 16 <= columns; first += 16)
        pack_b_block<kGroup>(b + k0 * ldb + first, ldb, flip, group + first * kGroup);
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t* row = b + (k0 + i) * ldb;
      for (int64_t c = first; c < columns; ++c) group[c * kGroup + i] = static_cast<int8_t>(row[c] ^ flip);
    }
  }
  // The sum of a column is its product with ones.
  const V ones = hn::Set(D(), kGroup == 4 ? 0x01010101 : 0x00010001);
  for (int64_t c = 0; c < width; c += kLanes) {
    V sum = hn::Zero(D());
    for (int64_t k0 = 0; k0 < k; k0 += kGroup)
      sum = S::multiply_add(ones, S::load_b(out + k0 * width + c * kGroup), sum);
    hn::StoreU(sum, D(), column_sums + c);
  }
}

HWY_INLINE V sums_at(const Finish& f, int64_t r, int64_t c, size_t n) {
  constexpr D d;
  V s = hn::LoadN(d, f.sums + r * f.ld + c, n);
  if (f.add) s = hn::Add(s, hn::LoadN(d, f.add + c, n));
  if (f.a_zero) s = hn::Sub(s, hn::Mul(hn::Set(d, f.a_zero[r]), hn::LoadN(d, f.a_zero_cols + c, n)));
  if (f.b_zero) s = hn::Sub(s, hn::Mul(hn::Set(d, f.row_sums[r]), hn::LoadN(d, f.b_zero + c, n)));
  return s;
}

/// Constants of quantised outputs.
struct Bytes {
  VF low, high;  ///< before the zero point is added: no float leaves the range of int32
  hn::Vec<D16> zero;

  explicit Bytes(const Finish& f)
      : low(hn::Set(DF(), static_cast<float>(f.low - f.c_zero))),
        high(hn::Set(DF(), static_cast<float>(f.high - f.c_zero))),
        zero(hn::Set(D16(), static_cast<int16_t>(f.c_zero))) {}
  HWY_INLINE V round(V sum, VF scale) const {
    return hn::NearestIntInRange(D(), hn::Min(high, hn::Max(low, hn::Mul(hn::ConvertTo(DF(), sum), scale))));
  }
};

/// Two vectors of columns at a time, as a whole panel is wide.
template <class T>
void finish_panel(const Finish& f, const Bytes& bytes, int64_t c) {
  constexpr DF df;
  constexpr hn::Rebind<T, D16> dt;
  const float* scales = f.scale + c * f.scale_stride;
  const VF scale0 = f.scale_stride ? hn::LoadU(df, scales) : hn::Set(df, *scales);
  const VF scale1 = f.scale_stride ? hn::LoadU(df, scales + kLanes) : hn::Set(df, *scales);
  T* to = static_cast<T*>(f.c) + c;
  const size_t n = static_cast<size_t>(kLanes);
  for (int64_t r = 0; r < f.rows; ++r) {
    const VF a_scale = hn::Set(df, f.a_scales ? f.a_scales[r] : f.a_scale);
    const auto q = hn::OrderedDemote2To(D16(), bytes.round(sums_at(f, r, c, n), hn::Mul(a_scale, scale0)),
                                        bytes.round(sums_at(f, r, c + kLanes, n), hn::Mul(a_scale, scale1)));
    hn::StoreU(hn::DemoteTo(dt, hn::Add(q, bytes.zero)), dt, to + r * f.ldc);
  }
}

template <class T>
void finish_bytes(const Finish& f) {
  constexpr DF df;
  constexpr hn::Rebind<int16_t, D> d16;
  constexpr hn::Rebind<T, D> dt;
  const Bytes bytes(f);
  int64_t c = 0;
  for (; c + 2 * kLanes <= f.cols; c += 2 * kLanes) finish_panel<T>(f, bytes, c);
  for (; c < f.cols; c += kLanes) {
    const size_t n = static_cast<size_t>(std::min(kLanes, f.cols - c));
    const VF scale = f.scale_stride ? hn::LoadN(df, f.scale + c, n) : hn::Set(df, *f.scale);
    for (int64_t r = 0; r < f.rows; ++r) {
      const VF a_scale = hn::Set(df, f.a_scales ? f.a_scales[r] : f.a_scale);
      const auto q = hn::DemoteTo(d16, bytes.round(sums_at(f, r, c, n), hn::Mul(a_scale, scale)));
      alignas(16) T values[kLanes];
      hn::StoreU(hn::DemoteTo(dt, hn::Add(q, hn::Set(d16, static_cast<int16_t>(f.c_zero)))), dt, values);
      T* to = static_cast<T*>(f.c) + r * f.ldc + c;
      for (size_t i = 0; i < n; ++i) to[i] = values[i];
    }
  }
}

void finish(const Finish& f) {
  constexpr D d;
  constexpr DF df;
  const auto output = static_cast<Int8Output>(f.output);
  if (output == Int8Output::u8) return finish_bytes<uint8_t>(f);
  if (output == Int8Output::s8) return finish_bytes<int8_t>(f);
  for (int64_t r = 0; r < f.rows; ++r) {
    const VF a_scale = hn::Set(df, f.a_scales ? f.a_scales[r] : f.a_scale);
    for (int64_t c = 0; c < f.cols; c += kLanes) {
      const size_t n = static_cast<size_t>(std::min(kLanes, f.cols - c));
      const V s = sums_at(f, r, c, n);
      if (output == Int8Output::s32) {
        hn::StoreN(s, d, static_cast<int32_t*>(f.c) + r * f.ldc + c, n);
        continue;
      }
      const VF scale = hn::Mul(a_scale, f.scale_stride ? hn::LoadN(df, f.scale + c, n) : hn::Set(df, *f.scale));
      VF y = hn::Mul(hn::ConvertTo(df, s), scale);
      if (f.bias) y = hn::Add(y, hn::LoadN(df, f.bias + c, n));
      if (f.residual) y = hn::Add(y, hn::LoadN(df, f.residual + r * f.residual_ld + c, n));
      hn::StoreN(y, df, static_cast<float*>(f.c) + r * f.ldc + c, n);
    }
  }
}

/// What the rows of one call share.
template <int kNv>
struct PanelConstants {
  alignas(64) float scale[kNv * kLanes];
  alignas(64) float bias[kNv * kLanes];
  VF low, high;
  bool partial;

  explicit PanelConstants(const PanelRows& p)
      : low(hn::Set(DF(), static_cast<float>(p.low - p.c_zero))),
        high(hn::Set(DF(), static_cast<float>(p.high - p.c_zero))),
        partial(p.cols < kNv * kLanes) {
    for (int64_t c = 0; c < kNv * kLanes; ++c) {
      scale[c] = c < p.cols ? p.scale[c] * p.a_scale : 0.0f;
      bias[c] = p.bias && c < p.cols ? p.bias[c] : 0.0f;
    }
  }
};

/// `cols` elements of a vector's worth.
template <class T>
HWY_INLINE void copy_elements(const T* from, T* to, int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) to[c] = from[c];
}

/// sums - row_sums * b_zero, in place.
template <int kMr, int kNv>
HWY_INLINE void subtract_zeros(const PanelRows& p, int32_t* sums, int64_t row) {
  constexpr D d;
  for (int c = 0; c < kNv; ++c) {
    const V zero = hn::LoadU(d, p.b_zero + c * kLanes);
    for (int r = 0; r < kMr; ++r) {
      int32_t* at = sums + (r * kNv + c) * kLanes;
      hn::Store(hn::Sub(hn::Load(d, at), hn::Mul(hn::Set(d, p.row_sums[row + r]), zero)), d, at);
    }
  }
}

HWY_INLINE V round_sums(const int32_t* sums, V add, VF scale, VF low, VF high) {
  const VF y = hn::Mul(hn::ConvertTo(DF(), hn::Add(hn::Load(D(), sums), add)), scale);
  return hn::NearestIntInRange(D(), hn::Min(high, hn::Max(low, y)));
}

template <class T, int kMr, int kNv>
HWY_INLINE void store_bytes(const PanelRows& p, const PanelConstants<kNv>& k, const int32_t* sums, int64_t row) {
  constexpr D d;
  constexpr DF df;
  using DQ = std::conditional_t<kNv == 2, D16, hn::Rebind<int16_t, D>>;
  constexpr DQ dq;
  constexpr hn::Rebind<T, DQ> dt;
  const V add0 = hn::LoadU(d, p.add), add1 = hn::LoadU(d, p.add + (kNv - 1) * kLanes);
  const VF scale0 = hn::Load(df, k.scale), scale1 = hn::Load(df, k.scale + (kNv - 1) * kLanes);
  const VF low = k.low, high = k.high;
  const auto zero = hn::Set(dq, static_cast<int16_t>(p.c_zero));
  T* to = static_cast<T*>(p.c) + row * p.ldc;
  const int64_t ldc = p.ldc, cols = p.cols;
  const bool partial = k.partial;
  for (int r = 0; r < kMr; ++r, to += ldc, sums += kNv * kLanes) {
    hn::Vec<DQ> q;
    if constexpr (kNv == 2)
      q = hn::OrderedDemote2To(dq, round_sums(sums, add0, scale0, low, high),
                               round_sums(sums + kLanes, add1, scale1, low, high));
    else
      q = hn::DemoteTo(dq, round_sums(sums, add0, scale0, low, high));
    const auto bytes = hn::DemoteTo(dt, hn::Add(q, zero));
    if (HWY_LIKELY(!partial)) {
      hn::StoreU(bytes, dt, to);
    } else {
      T part[kNv * kLanes];
      hn::StoreU(bytes, dt, part);
      copy_elements(part, to, cols);
    }
  }
}

template <int kMr, int kNv>
HWY_INLINE void store_floats(const PanelRows& p, const PanelConstants<kNv>& k, const int32_t* sums, int64_t row) {
  constexpr D d;
  constexpr DF df;
  for (int r = 0; r < kMr; ++r) {
    float* const to = static_cast<float*>(p.c) + (row + r) * p.ldc;
    float part[kNv * kLanes];
    float* const at = HWY_UNLIKELY(k.partial) ? part : to;
    for (int c = 0; c < kNv; ++c, sums += kLanes) {
      const V s = hn::Add(hn::Load(d, sums), hn::LoadU(d, p.add + c * kLanes));
      const VF y = hn::Mul(hn::ConvertTo(df, s), hn::Load(df, k.scale + c * kLanes));
      hn::StoreU(hn::Add(y, hn::Load(df, k.bias + c * kLanes)), df, at + c * kLanes);
    }
    if (HWY_UNLIKELY(k.partial)) copy_elements(part, to, p.cols);
  }
}

/// `tiles` tiles of kMr rows each, from `row` on. kOut: 0 unsigned bytes, 1 signed bytes, 2 floats. The sums go through
/// memory: kept in registers up to the epilogue, g++ spills them in the loop over k.
template <class S, int kMr, int kNv, int kOut>
HWY_NOINLINE void panel_tiles(const PanelRows& p, const PanelConstants<kNv>& k, int64_t row, int64_t tiles) {
  for (int64_t t = 0; t < tiles; ++t, row += kMr) {
    alignas(64) int32_t sums[kMr * kNv * kLanes];
    const Tile rows{p.groups, p.a + row * p.lda, p.lda, p.b, 0, sums, kNv * kLanes};
    tile<S, kMr, kNv, 1>(rows);
    if (p.fix_count > 0) add_fixes(rows, kMr, 0, p.fixes, p.fix_count);
    if (HWY_UNLIKELY(p.b_zero != nullptr)) subtract_zeros<kMr, kNv>(p, sums, row);
    if constexpr (kOut == 0)
      store_bytes<uint8_t, kMr, kNv>(p, k, sums, row);
    else if constexpr (kOut == 1)
      store_bytes<int8_t, kMr, kNv>(p, k, sums, row);
    else
      store_floats<kMr, kNv>(p, k, sums, row);
  }
}

template <class S, int kMr, int kNv, int kOut>
void panel_rows(const PanelRows& p, const PanelConstants<kNv>& k, int rows, int64_t row, int64_t tiles) {
  if (rows == kMr) return panel_tiles<S, kMr, kNv, kOut>(p, k, row, tiles);
  if constexpr (kMr > 1) panel_rows<S, kMr - 1, kNv, kOut>(p, k, rows, row, tiles);
}

/// Rows are spread evenly over tiles.
template <class S, int kNv, int kOut>
void panel_split(const PanelRows& p) {
  const PanelConstants<kNv> k(p);
  const int64_t tiles = (p.rows + kRows - 1) / kRows, rows = p.rows / tiles, larger = p.rows % tiles;
  if (larger > 0) panel_rows<S, kRows, kNv, kOut>(p, k, static_cast<int>(rows + 1), 0, larger);
  panel_rows<S, kRows, kNv, kOut>(p, k, static_cast<int>(rows), larger * (rows + 1), tiles - larger);
}

template <class S, int kNv>
void panel(const PanelRows& p) {
  if (p.rows <= 0) return;
  switch (static_cast<Int8Output>(p.output)) {
    case Int8Output::u8:
      return panel_split<S, kNv, 0>(p);
    case Int8Output::s8:
      return panel_split<S, kNv, 1>(p);
    default:
      return panel_split<S, kNv, 2>(p);
  }
}

#if EPONA_INT8_PAIRS
/// A pair of B is small enough when 255 times its sum fits 16 bits: then so does every sum of products of the pair, for a
/// pair of different signs is smaller still. What is too much goes from the larger value into a Fix.
int split_pairs(int64_t k, int64_t width, int8_t* panel, Fix* fixes, int most) {
  constexpr int kGroup = Pairs::kGroup;
  constexpr DI8 d8;
  constexpr int kLimit = 128;
  const auto ones = hn::Set(DU8(), 1);
  const auto limit = hn::Set(D16(), kLimit);
  int count = 0;
  const int64_t bytes = (k + kGroup - 1) / kGroup * kGroup * width;
  for (int64_t i = 0; i < bytes; i += static_cast<int64_t>(hn::MaxLanes(d8))) {
    const auto sums = hn::SatWidenMulPairwiseAdd(D16(), ones, hn::LoadU(d8, panel + i));
    if (hn::AllFalse(D16(), hn::Gt(hn::Abs(sums), limit))) continue;
    for (int64_t j = i; j < i + static_cast<int64_t>(hn::MaxLanes(d8)); j += 2) {
      const int sum = panel[j] + panel[j + 1], excess = sum > kLimit ? sum - kLimit : sum < -kLimit ? sum + kLimit : 0;
      if (excess == 0) continue;
      if (count == most) return -1;
      const int64_t at = j + (std::abs(int{panel[j + 1]}) > std::abs(int{panel[j]}) ? 1 : 0);
      panel[at] = static_cast<int8_t>(panel[at] - excess);
      const int64_t group = at / (width * kGroup), column = at / kGroup % width;
      fixes[count++] = {static_cast<int32_t>(group * kGroup + at % kGroup), static_cast<int16_t>(column),
                        static_cast<int16_t>(excess)};
    }
  }
  return count;
}
#endif

template <class S, int kMr>
void fill(Kernels& table) {
  table.tile[kMr][0][0] = tile<S, kMr, 1, 1>;
  table.tile[kMr][1][0] = tile<S, kMr, 2, 1>;
  if constexpr (kMr <= 2) table.tile[kMr][1][1] = tile<S, kMr, 2, 2>;
  if constexpr (kMr == 1) table.tile[kMr][1][2] = tile<S, kMr, 2, 4>;
#if HWY_TARGET > HWY_AVX3_DL
  if constexpr (S::kGroup == 2) table.wide_tile[kMr] = wide_tile<kMr>;
#endif
  if constexpr (kMr < kRows) fill<S, kMr + 1>(table);
}

template <class S>
Kernels make_table(double ops_per_lane) {
  Kernels t{};
  t.rows = kRows;
  t.lanes = static_cast<int>(kLanes);
  t.group = S::kGroup;
  t.a_bytes = 4 / S::kGroup;
  t.a_offset = t.a_bytes == 1 ? 128 : 0;
  fill<S, 1>(t);
  t.pack_a = pack_a<4 / S::kGroup>;
  t.panel[0] = panel<S, 1>;
  t.panel[1] = panel<S, 2>;
  t.pack_b = pack_b<S>;
  t.finish = finish;
  t.ops_per_ns = ops_per_lane * kLanes;
  return t;
}

const Kernels& table() {
  static const Kernels k = make_table<Exact>(Exact::kGroup == 4 ? 40.0 : 18.0);
  return k;
}

const Kernels* pairs_table() {
#if EPONA_INT8_PAIRS
  static const Kernels k = [] {
    Kernels t = make_table<Pairs>(22.0);
    t.split_pairs = split_pairs;
    return t;
  }();
  return &k;
#else
  return nullptr;
#endif
}

}  // namespace epona::int8_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona::int8_detail {
HWY_EXPORT(table);
HWY_EXPORT(pairs_table);
const Kernels& kernels() {
  init_isa();
  return HWY_DYNAMIC_DISPATCH(table)();
}
const Kernels* pair_kernels() {
  init_isa();
  return HWY_DYNAMIC_DISPATCH(pairs_table)();
}
}  // namespace epona::int8_detail
#endif
