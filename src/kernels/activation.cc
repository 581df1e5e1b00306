#include "kernels/activation.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"
#include "kernels/activation_vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace {

void activate_rows(const Activation& act, const float* in, float* out, int64_t rows, int64_t cols, int64_t stride) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  with_activation(act.kind, [&](auto kind) HWY_ATTR {
    for (int64_t row = 0; row < rows; ++row) {
      const float* from = in + row * stride;
      float* to = out + row * stride;
      int64_t i = 0;
      for (; i + lanes <= cols; i += lanes)
        hn::StoreU(activate_vec<decltype(kind)::value>(d, hn::LoadU(d, from + i), act.a, act.b), d, to + i);
      if (i < cols) {
        const auto rest = static_cast<size_t>(cols - i);
        const auto v = activate_vec<decltype(kind)::value>(d, hn::LoadN(d, from + i, rest), act.a, act.b);
        hn::StoreN(v, d, to + i, rest);
      }
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {

HWY_EXPORT(activate_rows);

double activation_ns(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::none:
    case ActivationKind::relu:
    case ActivationKind::clip:
    case ActivationKind::leaky_relu:
    case ActivationKind::thresholded_relu:
    case ActivationKind::hard_sigmoid:
    case ActivationKind::hard_swish:
      return 0.15;
    case ActivationKind::softplus:
      return 1.2;
    default:
      return 0.7;
  }
}

void activate(const Activation& activation, const float* in, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(activate_rows)(activation, in, out, 1, n, n);
}

void activate_tile(const Activation& activation, float* data, int64_t rows, int64_t cols, int64_t stride) {
  if (activation.kind == ActivationKind::none) return;
  HWY_DYNAMIC_DISPATCH(activate_rows)(activation, data, data, rows, cols, stride);
}

}  // namespace epona
#endif  // HWY_ONCE
