#include "kernels/lstm_cell.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lstm_cell.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"
#include "kernels/math-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// sigmoid(s) * tanh(t) with one division: the quotients' denominators are multiplied first.
HWY_INLINE V sigmoid_tanh(V s, V t) {
  const D d;
  const V em = expm1_nonpos(d, hn::Mul(hn::Abs(t), hn::Set(d, -2.0f)));
  return hn::Div(hn::CopySign(em, t), hn::Mul(hn::Add(em, hn::Set(d, 2.0f)), one_plus_exp_neg(d, s)));
}

void step(const LstmStep& s) {
  const D d;
  const int64_t n = s.hidden;
  for_vectors(d, n, [&](int64_t k, auto part) HWY_ATTR {
    const auto gate = [&](int64_t g) HWY_ATTR {
      return hn::Add(load(d, s.gates + g * n + k, part), load(d, s.x + g * n + k, part));
    };
    V i = gate(0), o = gate(1), f = gate(2), c = load(d, s.c + k, part);
    const V g = gate(3);
    if (s.peephole) {
      i = hn::MulAdd(load(d, s.peephole + k, part), c, i);
      f = hn::MulAdd(load(d, s.peephole + 2 * n + k, part), c, f);
    }
    c = hn::Add(hn::Div(c, one_plus_exp_neg(d, f)), sigmoid_tanh(i, g));
    if (s.peephole) o = hn::MulAdd(load(d, s.peephole + n + k, part), c, o);
    store(c, d, s.c + k, part);
    store(sigmoid_tanh(o, c), d, s.h + k, part);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {
namespace {
HWY_EXPORT(step);
}  // namespace

void lstm_step(const LstmStep& s) { HWY_DYNAMIC_DISPATCH(step)(s); }
}  // namespace epona
#endif
