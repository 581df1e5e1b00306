// The name has int8 in it for the sake of -fno-tree-pre: see gemm_int8_tile.cc.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/gemm_nbits_tile.h"
#include "kernels/isa.h"

#define EPONA_WITH_INT_DOT
#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_nbits_int8.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace epona::nbits_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<int32_t>;
using DU = hn::RebindToUnsigned<D>;
using DF = hn::RebindToFloat<D>;
using D16 = hn::Repartition<int16_t, D>;
using DU8 = hn::Repartition<uint8_t, D>;
using DI8 = hn::Repartition<int8_t, D>;
using V = hn::Vec<D>;
using VF = hn::Vec<DF>;

constexpr bool kDot = HWY_TARGET <= HWY_AVX3_DL;
constexpr int kGroup = kDot ? 4 : 2;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
constexpr int kNv = 2;  // vectors per panel
constexpr int64_t kWidth = kNv * kLanes;

HWY_INLINE V broadcast4(const uint8_t* p) {
  int32_t four;
  std::memcpy(&four, p, 4);
  return hn::Set(D(), four);
}

/// Sums of one block of one panel with 4-bit weights: u8 x s8 products that cannot saturate, 15 * 127 * 2 in 16 bits.
template <int kMr>
HWY_INLINE void block_sums4(const uint8_t* b, const uint8_t* const* a, int64_t k0, int64_t block, V (&sum)[kMr][kNv]) {
  const auto mask = hn::Set(DU8(), 15);
  const auto ones = hn::Set(D16(), 1);
  HWY_UNROLL(8)
  for (int r = 0; r < kMr; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kNv; ++v) sum[r][v] = hn::Zero(D());
  }
  for (int64_t k = 0; k < block;) {
    // Eight such sums fit 16 bits: 32 values of k.
    const int64_t end = std::min<int64_t>(k + 32, block);
    hn::Vec<D16> part[kMr][kNv];
    HWY_UNROLL(8)
    for (int r = 0; r < kMr; ++r) {
      HWY_UNROLL(2)
      for (int v = 0; v < kNv; ++v) part[r][v] = hn::Zero(D16());
    }
    for (; k < end; k += 8) {
      hn::Vec<DU8> low[kNv], high[kNv];
      HWY_UNROLL(2)
      for (int v = 0; v < kNv; ++v) {
        const auto bytes = hn::LoadU(DU8(), b + v * kLanes * 4);
        low[v] = hn::And(bytes, mask);
        high[v] =
            hn::And(hn::BitCast(DU8(), hn::ShiftRight<4>(hn::BitCast(hn::Repartition<uint16_t, D>(), bytes))), mask);
      }
      b += kNv * kLanes * 4;
      HWY_UNROLL(8)
      for (int r = 0; r < kMr; ++r) {
        const auto x0 = hn::BitCast(DI8(), broadcast4(a[r] + k0 + k)),
                   x1 = hn::BitCast(DI8(), broadcast4(a[r] + k0 + k + 4));
        HWY_UNROLL(2)
        for (int v = 0; v < kNv; ++v) {
          if constexpr (kDot) {
            sum[r][v] = hn::SumOfMulQuadAccumulate(D(), low[v], x0, sum[r][v]);
            sum[r][v] = hn::SumOfMulQuadAccumulate(D(), high[v], x1, sum[r][v]);
          } else {
            part[r][v] = hn::Add(part[r][v], hn::SatWidenMulPairwiseAdd(D16(), low[v], x0));
            part[r][v] = hn::Add(part[r][v], hn::SatWidenMulPairwiseAdd(D16(), high[v], x1));
          }
        }
      }
    }
    if constexpr (!kDot) {
      HWY_UNROLL(8)
      for (int r = 0; r < kMr; ++r) {
        HWY_UNROLL(2)
        for (int v = 0; v < kNv; ++v) sum[r][v] = hn::Add(sum[r][v], hn::WidenMulPairwiseAdd(D(), part[r][v], ones));
      }
    }
  }
}

template <int kMr>
HWY_INLINE void block_sums8(const uint8_t* b, const uint8_t* const* a, int64_t k0, int64_t block, V (&sum)[kMr][kNv]) {
  HWY_UNROLL(8)
  for (int r = 0; r < kMr; ++r) {
    HWY_UNROLL(2)
    for (int v = 0; v < kNv; ++v) sum[r][v] = hn::Zero(D());
  }
  for (int64_t k = k0; k < k0 + block; k += kGroup) {
    if constexpr (kDot) {
      HWY_UNROLL(8)
      for (int r = 0; r < kMr; ++r) {
        const auto x = hn::BitCast(DI8(), broadcast4(a[r] + k));
        HWY_UNROLL(2)
        for (int v = 0; v < kNv; ++v) {
          sum[r][v] = hn::SumOfMulQuadAccumulate(D(), hn::LoadU(DU8(), b + v * kLanes * 4), x, sum[r][v]);
        }
      }
    } else {
      constexpr hn::Rebind<uint8_t, D16> half;
      hn::Vec<D16> row[kNv];
      HWY_UNROLL(2)
      for (int v = 0; v < kNv; ++v) row[v] = hn::PromoteTo(D16(), hn::LoadU(half, b + v * kLanes * 2));
      HWY_UNROLL(8)
      for (int r = 0; r < kMr; ++r) {
        const auto x = hn::BitCast(D16(), broadcast4(a[r] + k * 2));
        HWY_UNROLL(2)
        for (int v = 0; v < kNv; ++v) sum[r][v] = hn::Add(sum[r][v], hn::WidenMulPairwiseAdd(D(), x, row[v]));
      }
    }
    b += kNv * kLanes * kGroup;
  }
}

template <int kBits, int kMr, int kPanels>
HWY_NOINLINE void tile_int8(const Tile& t) {
  constexpr DF df;
  VF acc[kPanels][kMr][kNv];
  HWY_UNROLL(4)
  for (int p = 0; p < kPanels; ++p) {
    HWY_UNROLL(8)
    for (int r = 0; r < kMr; ++r) {
      HWY_UNROLL(2)
      for (int v = 0; v < kNv; ++v) acc[p][r][v] = hn::Zero(df);
    }
  }
  const uint8_t* a[kMr];
  HWY_UNROLL(8)
  for (int r = 0; r < kMr; ++r) a[r] = t.a.values + r * t.a.ld;
  const int64_t value_bytes = t.block * kWidth * kBits / 8;
  for (int64_t i = 0; i < t.blocks; ++i) {
    HWY_UNROLL(4)
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* b = t.b + p * t.panel_stride + i * t.block_bytes;
      V sum[kMr][kNv];
      if constexpr (kBits == 4) {
        block_sums4<kMr>(b, a, i * t.block, t.block, sum);
      } else {
        block_sums8<kMr>(b, a, i * t.block, t.block, sum);
      }
      const float* scales = reinterpret_cast<const float*>(b + value_bytes);
      const uint8_t* zeros = b + value_bytes + kWidth * 4;
      VF scale[kNv], zero[kNv] = {hn::Zero(df), hn::Zero(df)};
      HWY_UNROLL(2)
      for (int v = 0; v < kNv; ++v) {
        scale[v] = hn::LoadU(df, scales + v * kLanes);
        const hn::Rebind<uint8_t, D> d8;
        if (t.zeros) zero[v] = hn::ConvertTo(df, hn::PromoteTo(D(), hn::LoadU(d8, zeros + v * kLanes)));
      }
      HWY_UNROLL(8)
      for (int r = 0; r < kMr; ++r) {
        const VF a_scale = hn::Set(df, t.a.scales[r * t.blocks + i]);
        const int32_t a_sum = t.a.sums[r * t.blocks + i];
        HWY_UNROLL(2)
        for (int v = 0; v < kNv; ++v) {
          VF s;
          if (t.zeros) {
            s = hn::NegMulAdd(zero[v], hn::Set(df, static_cast<float>(a_sum)), hn::ConvertTo(df, sum[r][v]));
          } else {
            s = hn::ConvertTo(df, hn::Sub(sum[r][v], hn::Set(D(), a_sum * (1 << (kBits - 1)))));
          }
          acc[p][r][v] = hn::MulAdd(hn::Mul(scale[v], a_scale), s, acc[p][r][v]);
        }
      }
    }
  }
  HWY_UNROLL(4)
  for (int p = 0; p < kPanels; ++p) {
    HWY_UNROLL(8)
    for (int r = 0; r < kMr; ++r) {
      HWY_UNROLL(2)
      for (int v = 0; v < kNv; ++v) hn::StoreU(acc[p][r][v], df, t.sums + r * t.ld + p * kWidth + v * kLanes);
    }
  }
}

HWY_NOINLINE void tile_f32(const Tile& t) {
  constexpr DF df;
  constexpr DU du;
  const auto mask = hn::Set(du, 15u);
  VF acc[kNv];
  HWY_UNROLL(2)
  for (int v = 0; v < kNv; ++v) acc[v] = hn::Zero(df);
  const float* a = t.a_f32;
  for (int64_t i = 0; i < t.blocks; ++i) {
    const uint32_t* b = reinterpret_cast<const uint32_t*>(t.b + i * t.block_bytes);
    VF part[2][kNv];
    HWY_UNROLL(2)
    for (int v = 0; v < kNv; ++v) part[0][v] = part[1][v] = hn::Zero(df);
    for (int64_t k = 0; k < t.block; k += 8, a += 8, b += kWidth) {
      HWY_UNROLL(2)
      for (int v = 0; v < kNv; ++v) {
        auto bits = hn::LoadU(du, b + v * kLanes);
        HWY_UNROLL(8)
        for (int j = 0; j < 8; ++j) {
          const VF q = hn::ConvertTo(df, hn::BitCast(D(), hn::And(bits, mask)));
          part[j & 1][v] = hn::MulAdd(hn::Set(df, a[j]), q, part[j & 1][v]);
          bits = hn::ShiftRight<4>(bits);
        }
      }
    }
    const float* scales = reinterpret_cast<const float*>(b);
    const VF a_sum = hn::Set(df, t.a_sums[i]);
    HWY_UNROLL(2)
    for (int v = 0; v < kNv; ++v) {
      const VF zero = t.zeros ? hn::LoadU(df, scales + kWidth + v * kLanes) : hn::Set(df, 8.0f);
      const VF s = hn::NegMulAdd(zero, a_sum, hn::Add(part[0][v], part[1][v]));
      acc[v] = hn::MulAdd(hn::LoadU(df, scales + v * kLanes), s, acc[v]);
    }
  }
  HWY_UNROLL(2)
  for (int v = 0; v < kNv; ++v) hn::StoreU(acc[v], df, t.sums + v * kLanes);
}

void widen(int bits, bool has_zeros, int64_t blocks, int64_t block, int64_t width, const uint8_t* panel, float* out) {
  constexpr DF df;
  constexpr DU du;
  const int64_t per_lane = 32 / bits, value_bytes = block * width * bits / 8;
  const int64_t block_bytes = value_bytes + width * (has_zeros ? 8 : 4);
  const auto mask = hn::Set(du, (1u << bits) - 1);
  const VF middle = hn::Set(df, static_cast<float>(1 << (bits - 1)));
  for (int64_t i = 0; i < blocks; ++i, panel += block_bytes) {
    const float* scales = reinterpret_cast<const float*>(panel + value_bytes);
    const uint32_t* b = reinterpret_cast<const uint32_t*>(panel);
    for (int64_t k = 0; k < block; k += per_lane, b += width) {
      for (int64_t c = 0; c < width; c += kLanes) {
        const VF scale = hn::LoadU(df, scales + c);
        const VF zero = has_zeros ? hn::LoadU(df, scales + width + c) : middle;
        auto packed = hn::LoadU(du, b + c);
        for (int64_t j = 0; j < per_lane; ++j) {
          const VF q = hn::ConvertTo(df, hn::BitCast(D(), hn::And(packed, mask)));
          hn::StoreU(hn::Mul(hn::Sub(q, zero), scale), df, out + j * width + c);
          packed = hn::ShiftRightSame(packed, bits);
        }
      }
      out += per_lane * width;
    }
  }
}

/// One row of A. The last block is padded with zeros.
void round_a(int64_t k, int64_t block, const float* a, bool wide, uint8_t* values, float* scales, int32_t* sums) {
  constexpr hn::CappedTag<float, 16> df;
  constexpr hn::RebindToSigned<decltype(df)> d;
  constexpr int64_t kStep = static_cast<int64_t>(hn::MaxLanes(df));
  for (int64_t k0 = 0; k0 < k; k0 += block, a += block, ++scales, ++sums) {
    const int64_t count = std::min(block, k - k0);
    auto most = hn::Zero(df), poison = hn::Zero(df);  // poison becomes NaN with any NaN or infinity
    for (int64_t i = 0; i < count; i += kStep) {
      const auto x = hn::LoadN(df, a + i, static_cast<size_t>(std::min(kStep, count - i)));
      most = hn::Max(hn::Abs(x), most);
      poison = hn::MulAdd(x, hn::Zero(df), poison);
    }
    const float top = hn::ReduceMax(df, most);
    const float nan_or_zero = hn::ReduceSum(df, poison);
    *scales = top / 127 + nan_or_zero;
    if (std::isnan(nan_or_zero)) {  // the scale says it all; NaN has no integer
      const size_t bytes = static_cast<size_t>(block) * (wide ? 2 : 1);
      std::memset(values, 0, bytes);
      values += bytes;
      *sums = 0;
      continue;
    }
    const auto inverse = hn::Set(df, top > 0 ? 127 / top : 0.0f);
    auto total = hn::Zero(d);
    for (int64_t i = 0; i < block; i += kStep) {
      const size_t n = static_cast<size_t>(std::clamp<int64_t>(count - i, 0, kStep));
      const auto q = hn::NearestInt(hn::Mul(hn::LoadN(df, a + i, n), inverse));
      total = hn::Add(total, q);
      const hn::Rebind<int16_t, decltype(d)> d16;
      const hn::Rebind<int8_t, decltype(d)> d8;
      if (wide) {
        hn::StoreU(hn::DemoteTo(d16, q), d16, reinterpret_cast<int16_t*>(values) + i);
      } else {
        hn::StoreU(hn::DemoteTo(d8, q), d8, reinterpret_cast<int8_t*>(values) + i);
      }
    }
    *sums = hn::ReduceSum(d, total);
    values += block * (wide ? 2 : 1);
  }
}

template <int kBits, int kMr>
void fill(Kernels& t) {
  t.int8[kBits == 8][kMr] = tile_int8<kBits, kMr, 1>;
  if constexpr (kMr < kRows) fill<kBits, kMr + 1>(t);
}

const Kernels& table() {
  static const Kernels k = [] {
    Kernels t{};
    t.rows = kRows;
    t.lanes = static_cast<int>(kLanes);
    t.group = kGroup;
    t.wide = !kDot;
    fill<4, 1>(t);
    fill<8, 1>(t);
    t.int8_streams[0] = tile_int8<4, 1, 4>;
    t.int8_streams[1] = tile_int8<8, 1, 4>;
    t.f32 = tile_f32;
    t.round_a = round_a;
    t.widen = widen;
    return t;
  }();
  return k;
}

}  // namespace epona::nbits_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona::nbits_detail {
HWY_EXPORT(table);
const Kernels& kernels() {
  init_isa();
  return HWY_DYNAMIC_DISPATCH(table)();
}
}  // namespace epona::nbits_detail
#endif
