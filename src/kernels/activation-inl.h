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
    case ActivationKind::none:
      return {false, false, 0, 0};
    case ActivationKind::relu:
      return {true, false, 0, kInf};
    case ActivationKind::clip:
      return {true, false, activation.a, activation.b};
    default:
      return {false, true, 0, 0};
  }
}

/// NaN stays NaN: x86 min and max return their second operand then.
template <class V>
HWY_INLINE V clamp(V low, V high, V x) {
  return hn::Min(high, hn::Max(low, x));
}

/// In place.
inline void activate_range(const Activation& activation, float* x, int64_t n) { activate(activation, x, x, n); }

}  // namespace epona::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target include guard
