// Vector exp, log, tanh, erf, ... on fp32, at most 4 ulp off and usually 2. Include inside a foreach_target file.
#if defined(EPONA_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EPONA_KERNELS_MATH_INL_H_
#undef EPONA_KERNELS_MATH_INL_H_
#else
#define EPONA_KERNELS_MATH_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x86 MIN/MAX return the second operand when one is NaN and NEON's return NaN: with the bound first, NaN in x survives.
template <class V>
HWY_INLINE V at_most(V bound, V x) {
  return hn::Min(bound, x);
}
template <class V>
HWY_INLINE V at_least(V bound, V x) {
  return hn::Max(bound, x);
}

/// c[0] + c[1] x + c[2] x^2 + ... by Horner's rule.
template <class D, class V = hn::Vec<D>, class... C>
HWY_INLINE V poly(D d, V x, float c0, C... rest) {
  if constexpr (sizeof...(rest) == 0) {
    (void)x;
    return hn::Set(d, c0);
  } else {
    return hn::MulAdd(poly(d, x, rest...), x, hn::Set(d, c0));
  }
}

/// c[0] + c[2] x2 + c[4] x2^2 + ...
template <class D, class V = hn::Vec<D>>
HWY_INLINE V poly_even(D d, V, float c0) {
  return hn::Set(d, c0);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V poly_even(D d, V, float c0, float) {
  return hn::Set(d, c0);
}
template <class D, class V = hn::Vec<D>, class... C>
HWY_INLINE V poly_even(D d, V x2, float c0, float, float c2, C... rest) {
  return hn::MulAdd(poly_even(d, x2, c2, rest...), x2, hn::Set(d, c0));
}

/// The same value as poly: even and odd terms apart, which halves the latency of a long chain.
template <class D, class V = hn::Vec<D>, class... C>
HWY_INLINE V poly_split(D d, V x, V x2, float c0, C... rest) {
  return hn::MulAdd(poly_even(d, x2, rest...), x, poly_even(d, x2, c0, rest...));
}

/// x = n ln2 + r with |r| <= ln2/2: gives e^r - 1, and a vector whose low 9 bits are n + 127.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_reduced(D d, V x, V& biased) {
  const V magic = hn::Set(d, 12582912.0f + 127.0f);  // 1.5 2^23: adding it rounds to an integer
  biased = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(biased, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);  // 9 bits: n times it is exact even without FMA
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  const V q = poly(d, r, 0.4999999403953552f, 0.16666509211063385f, 0.04166851565241814f, 0.008370064198970795f,
                   0.0013812030665576458f);
  return hn::MulAdd(hn::Mul(r, r), q, r);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V pow2_from_biased(D d, V biased) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, biased)));
}

/// e^x over the whole range, denormal results included.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = at_most(hn::Set(d, 104.0f), at_least(hn::Set(d, -104.0f), x));
  V biased;
  const V p = hn::Add(exp_reduced(d, x, biased), hn::Set(d, 1.0f));
  // 2^n in two factors, so that neither overflows nor is denormal while the product may.
  const auto n = hn::Sub(hn::BitCast(di, biased), hn::Set(di, 0x4B400000 + 127));
  const auto half = hn::ShiftRight<1>(n);
  const auto bias = hn::Set(di, 127);
  const V s1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V s2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(n, half), bias)));
  return hn::Mul(hn::Mul(p, s1), s2);
}

/// e^x for x <= 88; a result below the smallest normal number becomes 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_nonpos(D d, V x) {
  V biased;
  const V p = hn::Add(exp_reduced(d, x, biased), hn::Set(d, 1.0f));
  const V y = hn::Mul(p, pow2_from_biased(d, biased));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.3365f)), y);
}

/// e^x - 1 for x <= 88.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1_nonpos(D d, V x) {
  V biased;
  const V q = exp_reduced(d, at_least(hn::Set(d, -87.0f), x), biased);
  const V scale = pow2_from_biased(d, biased);
  return hn::MulAdd(q, scale, hn::Sub(scale, hn::Set(d, 1.0f)));
}

/// log(x) for positive normal finite x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_normal(D d, V x, V exponent_offset) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3F3504F3)));  // m in [sqrt(1/2), sqrt(2))
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  const V t = hn::Sub(m, hn::Set(d, 1.0f));
  const V n = hn::Add(hn::ConvertTo(d, e), exponent_offset);
  const V t2 = hn::Mul(t, t);
  const V q =
      poly_split(d, t, t2, 0.3333333134651184f, -0.2500081956386566f, 0.20001226663589478f, -0.16623356938362122f,
                 0.14201757311820984f, -0.13160181045532227f, 0.1276157796382904f, -0.07634502649307251f);
  V y = hn::Mul(hn::Mul(t2, t), q);
  y = hn::MulAdd(n, hn::Set(d, -2.12194440e-4f), y);
  y = hn::NegMulAdd(hn::Set(d, 0.5f), t2, y);
  y = hn::Add(t, y);
  return hn::MulAdd(n, hn::Set(d, 0.693359375f), y);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  const V zero = hn::Zero(d), inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto denormal = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const V scaled = hn::IfThenElse(denormal, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  V y = log_normal(d, scaled, hn::IfThenElseZero(denormal, hn::Set(d, -23.0f)));
  y = hn::IfThenElse(hn::Lt(x, inf), y, x);  // inf and NaN
  y = hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
  return hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), y);
}

/// log(1 + x) for 0 <= x <= 1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_unit(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(x, one);
  const V lost = hn::Sub(x, hn::Sub(u, one));  // what rounding 1 + x dropped
  return hn::Add(log_normal(d, u, hn::Zero(d)), lost);
}

/// -em/(2 + em) with em = e^(-2|x|) - 1
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V em = expm1_nonpos(d, hn::Mul(hn::Abs(x), hn::Set(d, -2.0f)));
  return hn::CopySign(hn::Div(em, hn::Add(em, hn::Set(d, 2.0f))), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  const V t = at_most(hn::Set(d, 4.0f), hn::Abs(x)), z = hn::Mul(t, t);  // erf(4) rounds to 1
  const V near = hn::Mul(x, poly(d, z, 1.1283791065216064f, -0.3761261999607086f, 0.11283376812934875f,
                                 -0.026834623888134956f, 0.00511434581130743f, -0.0006749513559043407f));
  const V k =
      poly_split(d, t, z, -3.756340447580442e-05f, 1.1288442611694336f, -0.3653070330619812f, 0.10684767365455627f,
                 -0.02424847148358822f, 0.003868698375299573f, -0.0003788994799833745f, 1.6915042579057626e-05f);
  const V far = hn::Sub(hn::Set(d, 1.0f), exp_nonpos(d, hn::Neg(hn::Add(z, k))));
  return hn::IfThenElse(hn::Lt(t, hn::Set(d, 0.75f)), near, hn::CopySign(far, x));
}

/// x Phi(x), with Phi(-t) = exp(-t^2/2 - h(t)): the tail keeps its relative accuracy down to x = -6.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu(D d, V x) {
  const V t = hn::Abs(x), c = at_most(hn::Set(d, 6.0f), t);
  const V h =
      poly_split(d, c, hn::Mul(c, c), 0.6931471824645996f, 0.7978860139846802f, -0.18170514702796936f,
                 0.03639189898967743f, -0.0048830583691596985f, 5.936929665040225e-05f, 0.00016361720918212086f,
                 -4.38330062024761e-05f, 5.977307864668546e-06f, -4.400390025693923e-07f, 1.3818291400014004e-08f);
  const V tail = exp_nonpos(d, hn::NegMulAdd(hn::Mul(t, t), hn::Set(d, 0.5f), hn::Neg(h)));
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 1.0f), tail)));
}

/// 1/(1 + e^-x); below -88.4 it is 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V one_plus_exp_neg(D d, V x) {
  // Up to 89 the power of two is at most "2^128", whose bits are infinity's.
  const V c = at_most(hn::Set(d, 89.0f), at_least(hn::Set(d, -87.0f), hn::Neg(x)));
  V biased;
  const V p = hn::Add(exp_reduced(d, c, biased), hn::Set(d, 1.0f));
  return hn::MulAdd(p, pow2_from_biased(d, biased), hn::Set(d, 1.0f));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  return hn::Div(hn::Set(d, 1.0f), one_plus_exp_neg(d, x));
}

/// log(1 + e^x)
template <class D, class V = hn::Vec<D>>
HWY_INLINE V softplus(D d, V x) {
  const V e = exp_nonpos(d, hn::Neg(hn::Abs(x)));
  return hn::Add(at_least(hn::Zero(d), x), log1p_unit(d, e));
}

}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#endif  // include guard
