// Activations on vectors. Per-target code: included by the .cc files that foreach_target.h compiles.
#if defined(EPONA_ACTIVATION_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef EPONA_ACTIVATION_INL_H
#undef EPONA_ACTIVATION_INL_H
#else
#define EPONA_ACTIVATION_INL_H
#endif

#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "kernels/activation.h"

HWY_BEFORE_NAMESPACE();
namespace epona::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// How a kernel's epilogue applies an activation: as a clamp of the registers, or by a call on what it has stored.
struct Range {
  bool clamps, out_of_line;
  float low, high;
};

HWY_INLINE Range clamp_range(const Activation& activation) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  switch (activation.kind) {
    case ActivationKind::none: return {false, false, 0, 0};
    case ActivationKind::relu: return {true, false, 0, kInf};
    case ActivationKind::clip: return {true, false, activation.a, activation.b};
    default: return {false, true, 0, 0};
  }
}

/// NaN stays NaN: x86 min and max return their second operand then.
template <class V>
HWY_INLINE V clamp(V low, V high, V x) {
  return hn::Min(high, hn::Max(low, x));
}

/// In place; n is a multiple of 16.
HWY_NOINLINE void activate_range(const Activation& activation, float* x, int64_t n) {
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const V a = hn::Set(d, activation.a), b = hn::Set(d, activation.b), zero = hn::Zero(d), one = hn::Set(d, 1.0f);
  const auto map = [&](auto f) HWY_ATTR {
    for (int64_t i = 0; i < n; i += lanes) hn::Store(f(hn::Load(d, x + i)), d, x + i);
  };
  switch (activation.kind) {
    case ActivationKind::leaky_relu:
      return map([&](V v) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, zero), hn::Mul(a, v), v); });
    case ActivationKind::hard_sigmoid:
      return map([&](V v) HWY_ATTR { return clamp(zero, one, hn::MulAdd(a, v, b)); });
    case ActivationKind::hard_swish:
      return map([&](V v) HWY_ATTR { return hn::Mul(v, clamp(zero, one, hn::MulAdd(a, v, b))); });
    default: return;
  }
}

}  // namespace epona::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target include guard
