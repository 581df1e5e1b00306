#include "kernels/elementwise_steps.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise_steps.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"
#include "kernels/activation_vec-inl.h"
#include "kernels/math_wide-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V truth(hn::Mask<D> mask) { return hn::IfThenElseZero(mask, hn::Set(D(), 1.0f)); }
/// Also for NaN: Ne is ordered on AVX2.
HWY_INLINE hn::Mask<D> is_true(V x) { return hn::Not(hn::Eq(x, hn::Zero(D()))); }

/// One vector of an operation's result. x86 min and max return their second operand when either is NaN.
template <EwOp op>
HWY_INLINE V apply(V x, V y, V z) {
  (void)y, (void)z;
  const D d;
  if constexpr (op == EwOp::copy) return x;
  if constexpr (op == EwOp::neg) return hn::Neg(x);
  if constexpr (op == EwOp::abs) return hn::Abs(x);
  if constexpr (op == EwOp::sign) {
    const V one = hn::Set(d, 1.0f);
    return hn::IfThenElse(is_true(x), hn::IfThenElse(hn::Eq(x, x), hn::CopySign(one, x), x), hn::Zero(d));
  }
  if constexpr (op == EwOp::floor) return hn::Floor(x);
  if constexpr (op == EwOp::ceil) return hn::Ceil(x);
  if constexpr (op == EwOp::round) return hn::Round(x);
  if constexpr (op == EwOp::sqrt) return hn::Sqrt(x);
  if constexpr (op == EwOp::pow_half) {
    const V inf = hn::Inf(d);
    return hn::IfThenElse(hn::Eq(x, hn::Neg(inf)), inf, hn::Sqrt(hn::Add(x, hn::Zero(d))));
  }
  if constexpr (op == EwOp::rsqrt) return hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x));
  if constexpr (op == EwOp::reciprocal) return hn::Div(hn::Set(d, 1.0f), x);
  if constexpr (op == EwOp::square) return hn::Mul(x, x);
  if constexpr (op == EwOp::cube) return hn::Mul(hn::Mul(x, x), x);
  if constexpr (op == EwOp::exp) return exp(d, x);
  if constexpr (op == EwOp::log) return log(d, x);
  if constexpr (op == EwOp::erf) return erf(d, x);
  if constexpr (op == EwOp::sin) return sin_shifted<0>(d, x);
  if constexpr (op == EwOp::cos) return sin_shifted<1>(d, x);
  if constexpr (op == EwOp::is_nan) return truth(hn::IsNaN(x));
  if constexpr (op == EwOp::logical_not) return truth(hn::Eq(x, hn::Zero(d)));
  if constexpr (op == EwOp::add) return hn::Add(x, y);
  if constexpr (op == EwOp::sub) return hn::Sub(x, y);
  if constexpr (op == EwOp::mul) return hn::Mul(x, y);
  if constexpr (op == EwOp::div) return hn::Div(x, y);
  if constexpr (op == EwOp::max) return hn::IfThenElse(hn::Eq(x, x), hn::Max(x, y), x);
  if constexpr (op == EwOp::min) return hn::IfThenElse(hn::Eq(x, x), hn::Min(x, y), x);
  if constexpr (op == EwOp::pow) return pow(d, x, y);
  if constexpr (op == EwOp::equal) return truth(hn::Eq(x, y));
  if constexpr (op == EwOp::less) return truth(hn::Lt(x, y));
  if constexpr (op == EwOp::less_equal) return truth(hn::Le(x, y));
  if constexpr (op == EwOp::greater) return truth(hn::Gt(x, y));
  if constexpr (op == EwOp::greater_equal) return truth(hn::Ge(x, y));
  if constexpr (op == EwOp::logical_and) return truth(hn::And(is_true(x), is_true(y)));
  if constexpr (op == EwOp::logical_or) return truth(hn::Or(is_true(x), is_true(y)));
  if constexpr (op == EwOp::logical_xor) return truth(hn::Xor(is_true(x), is_true(y)));
  if constexpr (op == EwOp::prelu) return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, y), x);
  if constexpr (op == EwOp::mul_add) return hn::MulAdd(x, y, z);
  if constexpr (op == EwOp::where) return hn::IfThenElse(is_true(x), y, z);
}

template <EwOp op>
HWY_INLINE constexpr int arity() {
  return op >= EwOp::mul_add ? 3 : op >= EwOp::add ? 2 : 1;
}

/// Source k advances by inc[k] vectors a step: 0 reads the same repeated value again.
template <EwOp op>
void step(const Activation&, const float* const* src, const int* inc, float* dst, int64_t n) {
  constexpr int kArity = arity<op>();
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x = src[0];
  const float* y = kArity > 1 ? src[1] : x;
  const float* z = kArity > 2 ? src[2] : x;
  const int64_t dx = inc[0] * lanes, dy = kArity > 1 ? inc[1] * lanes : 0, dz = kArity > 2 ? inc[2] * lanes : 0;
  const auto one = [&](const float* a, const float* b, const float* c) HWY_ATTR {
    return apply<op>(hn::LoadU(d, a), kArity > 1 ? hn::LoadU(d, b) : hn::Zero(d),
                     kArity > 2 ? hn::LoadU(d, c) : hn::Zero(d));
  };
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V first = one(x, y, z);
    const V second = one(x + dx, y + dy, z + dz);
    hn::StoreU(first, d, dst + i);
    hn::StoreU(second, d, dst + i + lanes);
    x += 2 * dx;
    y += 2 * dy;
    z += 2 * dz;
  }
  for (; i < n; i += lanes) {
    const auto rest = static_cast<size_t>(HWY_MIN(n - i, lanes));
    const V a = hn::LoadN(d, x, rest);
    const V b = kArity > 1 ? hn::LoadN(d, y, rest) : a;
    const V c = kArity > 2 ? hn::LoadN(d, z, rest) : a;
    hn::StoreN(apply<op>(a, b, c), d, dst + i, rest);
    x += dx;
    y += dy;
    z += dz;
  }
}

template <ActivationKind kind>
void activation_step(const Activation& act, const float* const* src, const int* inc, float* dst, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* x = src[0];
  const int64_t dx = inc[0] * lanes;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V first = activate_vec<kind>(d, hn::LoadU(d, x), act.a, act.b);
    const V second = activate_vec<kind>(d, hn::LoadU(d, x + dx), act.a, act.b);
    hn::StoreU(first, d, dst + i);
    hn::StoreU(second, d, dst + i + lanes);
    x += 2 * dx;
  }
  for (; i < n; i += lanes) {
    const auto rest = static_cast<size_t>(HWY_MIN(n - i, lanes));
    hn::StoreN(activate_vec<kind>(d, hn::LoadN(d, x, rest), act.a, act.b), d, dst + i, rest);
    x += dx;
  }
}

EwStepFunction step_function(EwOp op, ActivationKind kind) {
  EwStepFunction found = nullptr;
  switch (op) {
    case EwOp::activation:
      with_activation(kind, [&](auto k) { found = activation_step<decltype(k)::value>; });
      break;
#define EPONA_STEP(name)      \
  case EwOp::name:            \
    found = step<EwOp::name>; \
    break;
      EPONA_STEP(copy)
      EPONA_STEP(neg)
      EPONA_STEP(abs)
      EPONA_STEP(sign)
      EPONA_STEP(floor)
      EPONA_STEP(ceil)
      EPONA_STEP(round)
      EPONA_STEP(sqrt)
      EPONA_STEP(pow_half)
      EPONA_STEP(rsqrt)
      EPONA_STEP(reciprocal)
      EPONA_STEP(square)
      EPONA_STEP(cube)
      EPONA_STEP(exp)
      EPONA_STEP(log)
      EPONA_STEP(erf)
      EPONA_STEP(sin)
      EPONA_STEP(cos)
      EPONA_STEP(is_nan)
      EPONA_STEP(logical_not)
      EPONA_STEP(add)
      EPONA_STEP(sub)
      EPONA_STEP(mul)
      EPONA_STEP(div)
      EPONA_STEP(max)
      EPONA_STEP(min)
      EPONA_STEP(pow)
      EPONA_STEP(equal)
      EPONA_STEP(less)
      EPONA_STEP(less_equal)
      EPONA_STEP(greater)
      EPONA_STEP(greater_equal)
      EPONA_STEP(logical_and)
      EPONA_STEP(logical_or)
      EPONA_STEP(logical_xor)
      EPONA_STEP(prelu)
      EPONA_STEP(mul_add)
      EPONA_STEP(where)
#undef EPONA_STEP
  }
  return found;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {

HWY_EXPORT(step_function);

EwStepFunction ew_step_function(EwOp op, ActivationKind kind) { return HWY_DYNAMIC_DISPATCH(step_function)(op, kind); }

}  // namespace epona
#endif  // HWY_ONCE
