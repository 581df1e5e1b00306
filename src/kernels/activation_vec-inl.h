// The functions of activation.h on vectors, for the epilogues of other kernels. Include inside a foreach_target file.
#if defined(EPONA_KERNELS_ACTIVATION_VEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EPONA_KERNELS_ACTIVATION_VEC_INL_H_
#undef EPONA_KERNELS_ACTIVATION_VEC_INL_H_
#else
#define EPONA_KERNELS_ACTIVATION_VEC_INL_H_
#endif

#include <type_traits>

#include "hwy/highway.h"
#include "kernels/activation.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One activation known at compile time.
template <ActivationKind K, class D, class V = hn::Vec<D>>
HWY_INLINE V activate_vec(D d, V x, float a, float b) {
  using A = ActivationKind;
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  if constexpr (K == A::none) {
    return x;
  } else if constexpr (K == A::relu) {
    return at_least(zero, x);
  } else if constexpr (K == A::clip) {
    return at_most(hn::Set(d, b), at_least(hn::Set(d, a), x));
  } else if constexpr (K == A::leaky_relu) {
    return hn::IfThenElse(hn::Lt(x, zero), hn::Mul(x, hn::Set(d, a)), x);
  } else if constexpr (K == A::thresholded_relu) {
    return hn::IfThenZeroElse(hn::Le(x, hn::Set(d, a)), x);
  } else if constexpr (K == A::elu || K == A::celu || K == A::selu) {
    const V slope = hn::Set(d, K == A::selu ? a * b : a);
    const V positive = K == A::selu ? hn::Mul(x, hn::Set(d, b)) : x;
    const V exponent = K == A::celu ? hn::Div(x, hn::Set(d, a)) : x;
    const V negative = hn::Mul(slope, expm1_nonpos(d, at_most(zero, exponent)));
    return hn::IfThenElse(hn::Ge(x, zero), positive, negative);
  } else if constexpr (K == A::sigmoid) {
    return sigmoid(d, x);
  } else if constexpr (K == A::tanh) {
    return tanh(d, x);
  } else if constexpr (K == A::silu) {
    return hn::Div(x, one_plus_exp_neg(d, hn::Mul(x, hn::Set(d, a))));
  } else if constexpr (K == A::gelu) {
    return gelu(d, x);
  } else if constexpr (K == A::gelu_tanh) {
    // 1/2 (1 + tanh u) = sigmoid(2u), which does not cancel for negative u
    const V cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 2 * 0.79788456f * 0.044715f), hn::Set(d, 2 * 0.79788456f));
    return hn::Div(x, one_plus_exp_neg(d, hn::Mul(x, cubic)));
  } else if constexpr (K == A::hard_sigmoid) {
    return at_least(zero, at_most(one, hn::MulAdd(x, hn::Set(d, a), hn::Set(d, b))));
  } else if constexpr (K == A::hard_swish) {
    return hn::Mul(x, at_least(zero, at_most(one, hn::MulAdd(x, hn::Set(d, a), hn::Set(d, b)))));
  } else if constexpr (K == A::softplus) {
    return softplus(d, x);
  } else if constexpr (K == A::softsign) {
    return hn::Div(x, hn::Add(one, hn::Abs(x)));
  } else if constexpr (K == A::fake_quant8) {
    const V steps = hn::Round(hn::Div(x, hn::Set(d, a)));  // ties to even, as QuantizeLinear
    return hn::Mul(hn::Set(d, a), at_most(hn::Set(d, b + 255.0f), at_least(hn::Set(d, b), steps)));
  } else {
    static_assert(K == A::mish);
    // tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2); it is 1 from x = 20 on
    const V e = exp_nonpos(d, at_most(hn::Set(d, 20.0f), x));
    const V n = hn::Mul(e, hn::Add(e, hn::Set(d, 2.0f)));
    return hn::Mul(x, hn::Div(n, hn::Add(n, hn::Set(d, 2.0f))));
  }
}

/// Calls fn(std::integral_constant<ActivationKind, kind>()), so that a loop can be compiled once for each function.
template <class F>
HWY_INLINE void with_activation(ActivationKind kind, F&& fn) {
  switch (kind) {
#define EPONA_ACTIVATION(name)                                          \
  case ActivationKind::name:                                            \
    fn(std::integral_constant<ActivationKind, ActivationKind::name>()); \
    return;
    EPONA_ACTIVATION(none)
    EPONA_ACTIVATION(relu)
    EPONA_ACTIVATION(clip)
    EPONA_ACTIVATION(leaky_relu)
    EPONA_ACTIVATION(thresholded_relu)
    EPONA_ACTIVATION(elu)
    EPONA_ACTIVATION(celu)
    EPONA_ACTIVATION(selu)
    EPONA_ACTIVATION(sigmoid)
    EPONA_ACTIVATION(tanh)
    EPONA_ACTIVATION(silu)
    EPONA_ACTIVATION(gelu)
    EPONA_ACTIVATION(gelu_tanh)
    EPONA_ACTIVATION(hard_sigmoid)
    EPONA_ACTIVATION(hard_swish)
    EPONA_ACTIVATION(softplus)
    EPONA_ACTIVATION(softsign)
    EPONA_ACTIVATION(mish)
    EPONA_ACTIVATION(fake_quant8)
#undef EPONA_ACTIVATION
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#endif  // include guard
