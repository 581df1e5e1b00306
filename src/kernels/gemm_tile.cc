#include "kernels/gemm_tile.h"

#include <algorithm>
#include <cstring>

#include "kernels/targets.h"
#include "kernels/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_tile.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace epona::gemm_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Rows of a full tile: with two vectors a row the sums and one row of B and a broadcast fill the register file.
#if HWY_TARGET <= HWY_AVX3
constexpr int kRows = 12;
#else
constexpr int kRows = 6;
#endif

template <int kMr, int kNv, int kPanels>
HWY_NOINLINE void tile(const Tile& t) {
  constexpr D d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int kCols = kNv * kPanels;
  V sum[kMr][kCols];
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) {
    HWY_UNROLL(16)
    for (int c = 0; c < kCols; ++c) sum[r][c] = hn::Zero(d);
  }
  if (t.start) {
    HWY_UNROLL(16)
    for (int r = 0; r < kMr; ++r) {
      HWY_UNROLL(16)
      for (int c = 0; c < kCols; ++c) sum[r][c] = hn::LoadU(d, t.start + r * t.start_ld + c * kLanes);
    }
  }
  const float* HWY_RESTRICT a[kMr];
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) a[r] = t.a + r * t.lda;
  const float* HWY_RESTRICT b = t.b;
  const float* HWY_RESTRICT ahead = t.prefetch;
  const int64_t count = t.k, ldb = t.ldb, ahead_step = t.prefetch_step, panel_stride = t.panel_stride;
  for (int64_t k = 0; k < count; ++k) {
    if constexpr (kPanels == 1) __builtin_prefetch(ahead, 0, 2);
    V row[kCols];
    HWY_UNROLL(16)
    for (int p = 0; p < kPanels; ++p) {
      HWY_UNROLL(16)
      for (int v = 0; v < kNv; ++v) row[p * kNv + v] = hn::LoadU(d, b + p * panel_stride + v * kLanes);
    }
    HWY_UNROLL(16)
    for (int r = 0; r < kMr; ++r) {
      const V x = hn::Set(d, a[r][k]);
      HWY_UNROLL(16)
      for (int c = 0; c < kCols; ++c) sum[r][c] = hn::MulAdd(x, row[c], sum[r][c]);
    }
    b += ldb;
    ahead += ahead_step;
  }
  HWY_UNROLL(16)
  for (int r = 0; r < kMr; ++r) {
    HWY_UNROLL(16)
    for (int c = 0; c < kCols; ++c) {
      const int64_t column = c * kLanes;
      V y = sum[r][c];
      if (t.bias) y = hn::Add(y, hn::LoadU(d, t.bias + column));
      if (t.residual) y = hn::Add(y, hn::LoadU(d, t.residual + r * t.residual_ld + column));
      // The sum comes second: Max and Min then let NaN through on x86.
      if (t.clamp) y = hn::Min(hn::Set(d, t.high), hn::Max(hn::Set(d, t.low), y));
      hn::StoreU(y, d, t.c + r * t.ldc + column);
    }
  }
}

void finish(const Finish& f) {
  constexpr D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V alpha = hn::Set(d, f.alpha), beta = hn::Set(d, f.bias_scale);
  for (int64_t r = 0; r < f.rows; ++r) {
    const float* in = f.sums + r * f.sums_ld;
    const float* bias = f.bias ? f.bias + r * f.bias_row_stride : nullptr;
    const float* residual = f.residual ? f.residual + r * f.residual_ld : nullptr;
    float* out = f.c + r * f.ldc;
    for (int64_t c = 0; c < f.cols; c += lanes) {
      const size_t n = static_cast<size_t>(std::min(lanes, f.cols - c));
      V y = hn::Mul(alpha, hn::LoadN(d, in + c, n));
      if (bias) y = hn::MulAdd(beta, f.bias_col_stride ? hn::LoadN(d, bias + c, n) : hn::Set(d, *bias), y);
      if (residual) y = hn::Add(y, hn::LoadN(d, residual + c, n));
      hn::StoreN(y, d, out + c, n);
    }
  }
}

// out[c * out_ld + r] = in[r * ld + c]
void transpose(int64_t rows, int64_t cols, const float* in, int64_t ld, float* out, int64_t out_ld) {
  constexpr hn::FixedTag<float, 4> d4;
  constexpr hn::Repartition<double, decltype(d4)> d2;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float* p = in + r * ld;
    int64_t c = 0;
    for (; c + 4 <= cols; c += 4) {
      const auto r0 = hn::LoadU(d4, p + c), r1 = hn::LoadU(d4, p + ld + c);
      const auto r2 = hn::LoadU(d4, p + 2 * ld + c), r3 = hn::LoadU(d4, p + 3 * ld + c);
      const auto l01 = hn::BitCast(d2, hn::InterleaveLower(d4, r0, r1)),
                 l23 = hn::BitCast(d2, hn::InterleaveLower(d4, r2, r3));
      const auto u01 = hn::BitCast(d2, hn::InterleaveUpper(d4, r0, r1)),
                 u23 = hn::BitCast(d2, hn::InterleaveUpper(d4, r2, r3));
      float* q = out + c * out_ld + r;
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, l01, l23)), d4, q);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, l01, l23)), d4, q + out_ld);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, u01, u23)), d4, q + 2 * out_ld);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, u01, u23)), d4, q + 3 * out_ld);
    }
    for (; c < cols; ++c) {
      for (int i = 0; i < 4; ++i) std::memcpy(out + c * out_ld + r + i, p + i * ld + c, sizeof(float));
    }
  }
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) std::memcpy(out + c * out_ld + r, in + r * ld + c, sizeof(float));
  }
}

// One panel of `width` columns, the first `columns` of them from B, the rest zero.
void pack(int64_t k, int64_t columns, int64_t width, const float* b, int64_t ldb, bool trans, float* out) {
  constexpr D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (columns < width) std::fill_n(out, k * width, 0.0f);
  if (trans) {
    transpose(columns, k, b, ldb, out, width);
  } else if (columns == width) {
    for (int64_t i = 0; i < k; ++i, b += ldb, out += width) {
      for (int64_t c = 0; c < width; c += lanes) hn::StoreU(hn::LoadU(d, b + c), d, out + c);
    }
  } else {
    for (int64_t i = 0; i < k; ++i, b += ldb, out += width) std::copy_n(b, columns, out);
  }
}

template <int kMr>
void fill(Kernels& table) {
  table.tile[kMr][0][0] = tile<kMr, 1, 1>;
  table.tile[kMr][1][0] = tile<kMr, 2, 1>;
  if constexpr (kMr <= 3) table.tile[kMr][1][1] = tile<kMr, 2, 2>;
  if constexpr (kMr == 1) table.tile[kMr][1][2] = tile<kMr, 2, 4>;
  if constexpr (kMr < kRows) fill<kMr + 1>(table);
}

const Kernels& table() {
  static const Kernels k = [] {
    Kernels t{};
    t.rows = kRows;
    t.lanes = static_cast<int>(hn::Lanes(D()));
    fill<1>(t);
    t.finish = finish;
    t.pack = pack;
    t.transpose = transpose;
    t.flops_per_ns = HWY_NATIVE_FMA ? 10.0 * t.lanes : 4.0 * t.lanes;
    return t;
  }();
  return k;
}

}  // namespace epona::gemm_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona::gemm_detail {
HWY_EXPORT(table);
const Kernels& kernels() {
  init_isa();
  return HWY_DYNAMIC_DISPATCH(table)();
}
}  // namespace epona::gemm_detail
#endif
