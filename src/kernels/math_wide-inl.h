// Vector pow, sin and cos on fp32, computed in double. Include inside a foreach_target file.
#if defined(EPONA_KERNELS_MATH_WIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EPONA_KERNELS_MATH_WIDE_INL_H_
#undef EPONA_KERNELS_MATH_WIDE_INL_H_
#else
#define EPONA_KERNELS_MATH_WIDE_INL_H_
#endif

#include <cmath>

#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V poly64(D d, V x, double c0) {
  (void)x;
  return hn::Set(d, c0);
}
template <class D, class V = hn::Vec<D>, class... C>
HWY_INLINE V poly64(D d, V x, double c0, C... rest) {
  return hn::MulAdd(poly64(d, x, rest...), x, hn::Set(d, c0));
}

/// log2 of x >= 0 that came from a float; 0 gives -inf, inf gives inf.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log2_wide(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto one = hn::Set(du, 0x3FF0000000000000);
  const auto e = hn::ShiftRight<52>(hn::Add(bits, hn::Set(du, 0x3FF0000000000000 - 0x3FE6A09E667F3BCD)));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::Sub(hn::ShiftLeft<52>(e), one)));  // in [sqrt(1/2), sqrt(2))
  // 2^52 + e as bits, less 2^52 + 1023
  const V exponent =
      hn::Sub(hn::BitCast(d, hn::Or(e, hn::Set(du, 0x4330000000000000))), hn::Set(d, 4503599627370496.0 + 1023.0));
  const V t = hn::Div(hn::Sub(m, hn::Set(d, 1.0)), hn::Add(m, hn::Set(d, 1.0)));
  const V a = poly64(d, hn::Mul(t, t), 2.8853900817778486, 0.9617966941160061, 0.57707794155214783, 0.41220933813104301,
                     0.31990203976938231, 0.28295430458198832);
  const V inf = hn::Inf(d);
  const V y = hn::IfThenElse(hn::Eq(x, inf), inf, hn::MulAdd(t, a, exponent));
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_wide(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V bound = hn::Set(d, 1000.0), magic = hn::Set(d, 6755399441055744.0);  // 1.5 2^52
  x = hn::Min(bound, hn::Max(hn::Neg(bound), x));
  const V shifted = hn::Add(x, magic);
  const V f = hn::Sub(x, hn::Sub(shifted, magic));
  const V p = poly64(d, f, 1.0, 0.69314718054593083, 0.24022650695467522, 0.055504109412142978, 0.0096181292284994698,
                     0.0013333450561293915, 0.00015403411629136617, 1.53100809396976e-5, 1.3264069697448984e-6);
  const auto scale = hn::Add(hn::ShiftLeft<52>(hn::BitCast(du, shifted)), hn::Set(du, 0x3FF0000000000000));
  return hn::Mul(p, hn::BitCast(d, scale));
}

/// Applies f to the two halves of x and y widened to double.
template <class D, class V = hn::Vec<D>, class F>
HWY_INLINE V in_double(D d, V x, V y, F f) {
  const hn::RepartitionToWide<D> dw;
  const hn::Half<D> dh;
  const auto low = hn::DemoteTo(dh, f(dw, hn::PromoteLowerTo(dw, x), hn::PromoteLowerTo(dw, y)));
  const auto high = hn::DemoteTo(dh, f(dw, hn::PromoteUpperTo(dw, x), hn::PromoteUpperTo(dw, y)));
  return hn::Combine(d, high, low);
}

struct PowMagnitude {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    return exp2_wide(d, hn::Mul(y, log2_wide(d, x)));
  }
};

/// C's pow, special cases included.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V pow(D d, V x, V y) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f), half = hn::Set(d, 0.5f);
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  const V ax = hn::Abs(x), y_half = hn::Mul(y, half);
  const auto is_integer = hn::Eq(hn::Round(y), y);
  const auto is_odd = hn::AndNot(hn::Eq(hn::Round(y_half), y_half), is_integer);
  V r = in_double(d, ax, y, PowMagnitude());
  r = hn::IfThenElse(hn::And(hn::Eq(ax, one), hn::Eq(y, y)), one, r);  // (-1)^inf
  r = hn::IfThenElse(is_odd, hn::CopySign(r, x), r);
  const auto negative = hn::And(hn::Lt(x, zero), hn::Gt(x, hn::Neg(hn::Inf(d))));
  r = hn::IfThenElse(hn::AndNot(is_integer, negative), nan, r);
  r = hn::IfThenElse(hn::IsNaN(x), x, r);
  return hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, zero)), one, r);
}

struct QuarterTurns {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V) const {
    return hn::Round(hn::Mul(x, hn::Set(d, 0.63661977236758134)));
  }
};

struct LessQuarterTurns {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V n) const {
    // pi/2 = 33 bits + rest: n times the first part is exact for the n that occur
    const V r = hn::NegMulAdd(n, hn::Set(d, 0x1.921fb544p+0), x);
    return hn::NegMulAdd(n, hn::Set(d, 0x1.0b4611a626331p-34), r);
  }
};

/// sin(x + quarters pi/2)
template <int quarters, class D, class V = hn::Vec<D>>
HWY_INLINE V sin_shifted(D d, V x) {
  const hn::RebindToSigned<D> di;
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, 1e6f))))) {
    HWY_ALIGN float lane[hn::MaxLanes(d)];
    hn::Store(x, d, lane);
    for (size_t i = 0; i < hn::Lanes(d); ++i) lane[i] = quarters ? std::cos(lane[i]) : std::sin(lane[i]);
    return hn::Load(d, lane);
  }
  const V n = in_double(d, x, x, QuarterTurns());
  const V r = in_double(d, x, n, LessQuarterTurns());
  const auto q = hn::Add(hn::ConvertInRangeTo(di, n), hn::Set(di, quarters));
  const V z = hn::Mul(r, r);
  const V s =
      hn::MulAdd(hn::Mul(r, z), poly(d, z, -0.16666655242443085f, 0.00833218079060316f, -0.00019517593318596482f), r);
  const V c =
      hn::MulAdd(hn::Mul(z, z), poly(d, z, 0.04166664555668831f, -0.0013887378154322505f, 2.4439483240712434e-05f),
                 hn::NegMulAdd(z, hn::Set(d, 0.5f), hn::Set(d, 1.0f)));
  const auto odd = hn::RebindMask(d, hn::Ne(hn::And(q, hn::Set(di, 1)), hn::Zero(di)));
  const V sign = hn::BitCast(d, hn::ShiftLeft<30>(hn::And(q, hn::Set(di, 2))));
  return hn::Xor(hn::IfThenElse(odd, c, s), sign);
}

}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#endif  // include guard
