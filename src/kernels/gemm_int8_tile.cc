// g++ 12 stores sums of integer dot products to the stack in every iteration unless -fno-tree-pre is given: the build
// gives it to files named *int8*.cc.
#include "kernels/gemm_int8_tile.h"

#include <algorithm>
#include <cstring>

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

// With a dot-product instruction (u8 x s8, four at a time, exact) A is kept as bytes. Without, both sides are widened
// to 16 bits and multiplied two at a time: vpmaddubsw would saturate.
#if HWY_TARGET <= HWY_AVX3_DL
constexpr int kGroup = 4;
#else
constexpr int kGroup = 2;
#endif
#if HWY_TARGET <= HWY_AVX3
constexpr int kRows = 12;
#else
constexpr int kRows = 6;
#endif
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
constexpr int kABytes = 4 / kGroup;

HWY_INLINE V broadcast4(const uint8_t* p) {
  int32_t group;
  std::memcpy(&group, p, 4);
  return hn::Set(D(), group);
}

/// Vector c of a row of B that spans several panels, in the form that multiply_add takes.
HWY_INLINE auto load_b(const int8_t* b, int64_t panel_stride, int c, int vectors) {
  const int8_t* at = b + c / vectors * panel_stride + c % vectors * kLanes * kGroup;
#if HWY_TARGET <= HWY_AVX3_DL
  return hn::LoadU(DI8(), at);
#else
  return hn::PromoteTo(D16(), hn::LoadU(hn::Rebind<int8_t, D16>(), at));
#endif
}

template <class B>
HWY_INLINE V multiply_add(V a, B b, V sum) {
#if HWY_TARGET <= HWY_AVX3_DL
  return hn::SumOfMulQuadAccumulate(D(), hn::BitCast(DU8(), a), b, sum);
#else
  return hn::Add(sum, hn::WidenMulPairwiseAdd(D(), hn::BitCast(D16(), a), b));
#endif
}

template <int kMr, int kNv, int kPanels>
HWY_NOINLINE void tile(const Tile& t) {
  constexpr D d;
  constexpr int kCols = kNv * kPanels;
  V sum[kMr][kCols];
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) {
    HWY_UNROLL(16)
    for (int c = 0; c < kCols; ++c) sum[r][c] = hn::Zero(d);
  }
  const uint8_t* HWY_RESTRICT a[kMr];
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) a[r] = t.a + r * t.lda;
  const int8_t* HWY_RESTRICT b = t.b;
  const int64_t bytes = t.groups * 4, panel_stride = t.panel_stride;
  for (int64_t i = 0; i < bytes; i += 4) {
    if constexpr (kMr == 1) {  // B is used as it comes: registers are short when many panels are read
      const V x = broadcast4(a[0] + i);
      HWY_UNROLL(16)
      for (int c = 0; c < kCols; ++c) sum[0][c] = multiply_add(x, load_b(b, panel_stride, c, kNv), sum[0][c]);
    } else {
      decltype(load_b(b, 0, 0, 1)) row[kCols];
      HWY_UNROLL(16)
      for (int c = 0; c < kCols; ++c) row[c] = load_b(b, panel_stride, c, kNv);
      HWY_UNROLL(16)
      for (int r = 0; r < kMr; ++r) {
        const V x = broadcast4(a[r] + i);
        HWY_UNROLL(16)
        for (int c = 0; c < kCols; ++c) sum[r][c] = multiply_add(x, row[c], sum[r][c]);
      }
    }
    b += kNv * kLanes * kGroup;
  }
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) {
    HWY_UNROLL(16)
    for (int c = 0; c < kCols; ++c) hn::StoreU(sum[r][c], d, t.sums + r * t.ld + c * kLanes);
  }
}

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

void pack_b(int64_t k, int64_t columns, int64_t width, const uint8_t* b, int64_t ldb, bool trans, bool is_signed,
            int8_t* out, int32_t* column_sums) {
  const uint8_t flip = is_signed ? 0 : 0x80;
  for (int64_t k0 = 0; k0 < k; k0 += kGroup) {
    const int64_t count = std::min<int64_t>(kGroup, k - k0);
    int8_t* group = out + k0 * width;
    if (count < kGroup || columns < width) std::memset(group, 0, static_cast<size_t>(width * kGroup));
    int64_t first = 0;
    if (!trans && count == kGroup)
      for (; first + 16 <= columns; first += 16) pack_b_block(b + k0 * ldb + first, ldb, flip, group + first * kGroup);
    for (int64_t i = 0; i < count; ++i) {
      const uint8_t* row = trans ? b + k0 + i : b + (k0 + i) * ldb;
      const int64_t step = trans ? ldb : 1;
      for (int64_t c = first; c < columns; ++c) group[c * kGroup + i] = static_cast<int8_t>(row[c * step] ^ flip);
    }
  }
  // The sum of a column is its product with ones.
  const V ones = hn::Set(D(), kGroup == 4 ? 0x01010101 : 0x00010001);
  for (int64_t c = 0; c < width; c += kLanes) {
    V sum = hn::Zero(D());
    for (int64_t k0 = 0; k0 < k; k0 += kGroup)
      sum = multiply_add(ones, load_b(out + k0 * width + c * kGroup, 0, 0, 1), sum);
    hn::StoreU(sum, D(), column_sums + c);
  }
}

void finish(const Finish& f) {
  constexpr D d;
  constexpr DF df;
  const auto output = static_cast<Int8Output>(f.output);
  for (int64_t r = 0; r < f.rows; ++r) {
    const VF a_scale = hn::Set(df, f.a_scales ? f.a_scales[r] : f.a_scale);
    const int32_t* in = f.sums + r * f.ld;
    for (int64_t c = 0; c < f.cols; c += kLanes) {
      const size_t n = static_cast<size_t>(std::min(kLanes, f.cols - c));
      V s = hn::LoadN(d, in + c, n);
      if (f.add) s = hn::Add(s, hn::LoadN(d, f.add + c, n));
      if (f.a_zero) s = hn::Sub(s, hn::Mul(hn::Set(d, f.a_zero[r]), hn::LoadN(d, f.a_zero_cols + c, n)));
      if (f.b_zero) s = hn::Sub(s, hn::Mul(hn::Set(d, f.row_sums[r]), hn::LoadN(d, f.b_zero + c, n)));
      if (output == Int8Output::s32) {
        hn::StoreN(s, d, static_cast<int32_t*>(f.c) + r * f.ldc + c, n);
        continue;
      }
      const VF scale = hn::Mul(a_scale, f.scale_stride ? hn::LoadN(df, f.scale + c, n) : hn::Set(df, *f.scale));
      VF y = hn::Mul(hn::ConvertTo(df, s), scale);
      if (output == Int8Output::f32) {
        if (f.bias) y = hn::Add(y, hn::LoadN(df, f.bias + c, n));
        if (f.residual) y = hn::Add(y, hn::LoadN(df, f.residual + r * f.residual_ld + c, n));
        hn::StoreN(y, df, static_cast<float*>(f.c) + r * f.ldc + c, n);
        continue;
      }
      // Clamped before rounding, so that no float is out of the range of int32.
      y = hn::Min(hn::Set(df, static_cast<float>(f.high - f.c_zero)),
                  hn::Max(hn::Set(df, static_cast<float>(f.low - f.c_zero)), y));
      const V q = hn::Add(hn::NearestInt(y), hn::Set(d, f.c_zero));
      const hn::Rebind<uint8_t, D> du8;
      const auto bytes = hn::TruncateTo(du8, hn::BitCast(hn::RebindToUnsigned<D>(), q));
      hn::StoreN(bytes, du8, static_cast<uint8_t*>(f.c) + r * f.ldc + c, n);
    }
  }
}

template <int kMr>
void fill(Kernels& table) {
  table.tile[kMr][0][0] = tile<kMr, 1, 1>;
  table.tile[kMr][1][0] = tile<kMr, 2, 1>;
  if constexpr (kMr <= 2) table.tile[kMr][1][1] = tile<kMr, 2, 2>;
  if constexpr (kMr == 1) table.tile[kMr][1][2] = tile<kMr, 2, 4>;
  if constexpr (kMr < kRows) fill<kMr + 1>(table);
}

const Kernels& table() {
  static const Kernels k = [] {
    Kernels t{};
    t.rows = kRows;
    t.lanes = static_cast<int>(kLanes);
    t.group = kGroup;
    t.a_bytes = kABytes;
    t.a_offset = kABytes == 1 ? 128 : 0;
    fill<1>(t);
    t.pack_a = pack_a;
    t.pack_b = pack_b;
    t.finish = finish;
    t.ops_per_ns = kGroup == 4 ? 40.0 * kLanes : 18.0 * kLanes;
    return t;
  }();
  return k;
}

}  // namespace epona::int8_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona::int8_detail {
HWY_EXPORT(table);
const Kernels& kernels() {
  init_isa();
  return HWY_DYNAMIC_DISPATCH(table)();
}
}  // namespace epona::int8_detail
#endif
