#include "kernels/winograd_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/winograd_tile.cc"
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

alignas(64) constexpr float kZeros[16] = {};

// B^T d of F(2, 3) and F(4, 3).
HWY_INLINE void to_points(const V (&x)[4], V (&t)[4]) {
  t[0] = hn::Sub(x[0], x[2]);
  t[1] = hn::Add(x[1], x[2]);
  t[2] = hn::Sub(x[2], x[1]);
  t[3] = hn::Sub(x[1], x[3]);
}

HWY_INLINE void to_points(const V (&x)[6], V (&t)[6]) {
  constexpr D d;
  const V four = hn::Set(d, 4.0f), five = hn::Set(d, 5.0f), two = hn::Set(d, 2.0f);
  t[0] = hn::MulAdd(four, x[0], hn::NegMulAdd(five, x[2], x[4]));
  const V a = hn::NegMulAdd(four, x[2], x[4]), b = hn::NegMulAdd(four, x[1], x[3]);
  t[1] = hn::Add(a, b);
  t[2] = hn::Sub(a, b);
  const V c = hn::Sub(x[4], x[2]), e = hn::Sub(x[3], x[1]);
  t[3] = hn::MulAdd(two, e, c);
  t[4] = hn::NegMulAdd(two, e, c);
  t[5] = hn::MulAdd(four, x[1], hn::NegMulAdd(five, x[3], x[5]));
}

// A^T m.
HWY_INLINE void from_points(const V (&m)[4], V (&y)[2]) {
  y[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
  y[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
}

HWY_INLINE void from_points(const V (&m)[6], V (&y)[4]) {
  constexpr D d;
  const V sum12 = hn::Add(m[1], m[2]), dif12 = hn::Sub(m[1], m[2]);
  const V sum34 = hn::Add(m[3], m[4]), dif34 = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(hn::Add(m[0], sum12), sum34);
  y[1] = hn::MulAdd(hn::Set(d, 2.0f), dif34, dif12);
  y[2] = hn::MulAdd(hn::Set(d, 4.0f), sum34, sum12);
  y[3] = hn::MulAdd(hn::Set(d, 8.0f), dif34, hn::Add(dif12, m[5]));
}

// G g.
HWY_INLINE void filter_points(const V (&w)[3], V (&t)[4]) {
  const V half = hn::Set(D(), 0.5f), even = hn::Mul(half, hn::Add(w[0], w[2])), odd = hn::Mul(half, w[1]);
  t[0] = w[0];
  t[1] = hn::Add(even, odd);
  t[2] = hn::Sub(even, odd);
  t[3] = w[2];
}

HWY_INLINE void filter_points(const V (&w)[3], V (&t)[6]) {
  constexpr D d;
  const V sixth = hn::Set(d, 1.0f / 6), even = hn::Mul(sixth, hn::Add(w[0], w[2])), odd = hn::Mul(sixth, w[1]);
  t[0] = hn::Mul(hn::Set(d, 0.25f), w[0]);
  t[1] = hn::Neg(hn::Add(even, odd));
  t[2] = hn::Sub(odd, even);
  const V wide = hn::MulAdd(hn::Set(d, 1.0f / 24), w[0], hn::Mul(sixth, w[2])),
          half = hn::Mul(hn::Set(d, 1.0f / 12), w[1]);
  t[3] = hn::Add(wide, half);
  t[4] = hn::Sub(wide, half);
  t[5] = w[2];
}

template <int kOut>
HWY_NOINLINE void filter(const float* taps, float* u, int64_t point_stride) {
  constexpr D d;
  constexpr int kIn = kOut + 2;
  alignas(64) float half[kIn][3][16];  // G g
  for (int lane = 0; lane < 16; lane += kLanes) {
    for (int j = 0; j < 3; ++j) {
      const V column[3] = {hn::Load(d, taps + j * 16 + lane), hn::Load(d, taps + (3 + j) * 16 + lane),
                           hn::Load(d, taps + (6 + j) * 16 + lane)};
      V t[kIn];
      filter_points(column, t);
      HWY_UNROLL(8)
      for (int i = 0; i < kIn; ++i) hn::Store(t[i], d, half[i][j] + lane);
    }
  }
  // Whole cache lines are written at once: the rows of the points are far apart.
  for (int i = 0; i < kIn; ++i) {
    for (int lane = 0; lane < 16; lane += kLanes) {
      const V row[3] = {hn::Load(d, half[i][0] + lane), hn::Load(d, half[i][1] + lane), hn::Load(d, half[i][2] + lane)};
      V t[kIn];
      filter_points(row, t);
      HWY_UNROLL(8)
      for (int j = 0; j < kIn; ++j) hn::Store(t[j], d, u + (i * kIn + j) * point_stride + lane);
    }
  }
}

template <int kOut>
HWY_NOINLINE void input(const float* x, const int64_t* offsets, float* v, int64_t point_stride) {
  constexpr D d;
  constexpr int kIn = kOut + 2;
  alignas(64) float half[kIn][kIn][kLanes];  // B^T d
  for (int lane = 0; lane < 16; lane += kLanes) {
    for (int j = 0; j < kIn; ++j) {
      V column[kIn], t[kIn];
      HWY_UNROLL(8)
      for (int i = 0; i < kIn; ++i) {
        const int64_t offset = offsets[i * kIn + j];
        column[i] = hn::Load(d, (offset < 0 ? kZeros : x + offset) + lane);
      }
      to_points(column, t);
      HWY_UNROLL(8)
      for (int i = 0; i < kIn; ++i) hn::Store(t[i], d, half[i][j]);
    }
    for (int i = 0; i < kIn; ++i) {
      V row[kIn], t[kIn];
      HWY_UNROLL(8)
      for (int j = 0; j < kIn; ++j) row[j] = hn::Load(d, half[i][j]);
      to_points(row, t);
      HWY_UNROLL(8)
      for (int j = 0; j < kIn; ++j) hn::Store(t[j], d, v + (i * kIn + j) * point_stride + lane);
    }
  }
}

template <int kOut>
HWY_NOINLINE void output(const WinogradOutput& o) {
  constexpr D d;
  constexpr int kIn = kOut + 2;
  alignas(64) float half[kOut][kIn][kLanes];  // A^T m
  const Range range = clamp_range(o.out.activation);
  const bool residual_first = o.out.residual != nullptr && !o.out.residual_last;
  const bool residual_last = o.out.residual != nullptr && o.out.residual_last;
  for (int lane = 0; lane < 16; lane += kLanes) {
    for (int j = 0; j < kIn; ++j) {
      V column[kIn], t[kOut];
      HWY_UNROLL(8)
      for (int i = 0; i < kIn; ++i) column[i] = hn::Load(d, o.m + (i * kIn + j) * o.point_stride + lane);
      from_points(column, t);
      HWY_UNROLL(8)
      for (int i = 0; i < kOut; ++i) hn::Store(t[i], d, half[i][j]);
    }
    const V bias = o.out.bias != nullptr ? hn::Load(d, o.out.bias + lane) : hn::Zero(d);
    for (int i = 0; i < o.rows; ++i) {
      V row[kIn], y[kOut];
      HWY_UNROLL(8)
      for (int j = 0; j < kIn; ++j) row[j] = hn::Load(d, half[i][j]);
      from_points(row, y);
      HWY_UNROLL(8)
      for (int j = 0; j < kOut; ++j) {
        if (j >= o.columns) break;
        const int64_t at = i * o.row_stride + j * 16 + lane;
        V sum = hn::Add(y[j], bias);
        if (residual_first) sum = hn::Add(sum, hn::Load(d, o.out.residual + at));
        if (range.clamps) sum = clamp(hn::Set(d, range.low), hn::Set(d, range.high), sum);
        if (residual_last && !range.out_of_line) sum = hn::Add(sum, hn::Load(d, o.out.residual + at));
        hn::Store(sum, d, o.out.y + at);
      }
    }
  }
  if (!range.out_of_line) return;
  for (int i = 0; i < o.rows; ++i) {
    float* y = o.out.y + i * o.row_stride;
    activate_range(o.out.activation, y, o.columns * 16);
    if (!residual_last) continue;
    const float* r = o.out.residual + i * o.row_stride;
    for (int k = 0; k < o.columns * 16; k += kLanes)
      hn::Store(hn::Add(hn::Load(d, y + k), hn::Load(d, r + k)), d, y + k);
  }
}

}  // namespace

const WinogradKernels& winograd_table(int m) {
  static constexpr WinogradKernels tables[2] = {{&input<2>, &output<2>, &filter<2>},
                                                {&input<4>, &output<4>, &filter<4>}};
  return tables[m == 4];
}

}  // namespace epona::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {
HWY_EXPORT(winograd_table);
const WinogradKernels& winograd_kernels(int m) { return HWY_DYNAMIC_DISPATCH(winograd_table)(m); }
}  // namespace epona
#endif
