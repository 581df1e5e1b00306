#include "kernels/softmax.h"

#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
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

HWY_INLINE V minus_infinity() { return hn::Neg(hn::Inf(D())); }

HWY_INLINE float max_of(const float* x, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V m0 = minus_infinity(), m1 = m0;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
  }
  for_vectors(d, n - i,
              [&](int64_t k, auto part) HWY_ATTR { m0 = hn::Max(m0, load_or(minus_infinity(), d, x + i + k, part)); });
  return hn::ReduceMax(d, hn::Max(m0, m1));
}

/// One slice that is contiguous. A NaN that the maximum misses comes back through the exponentials and their sum.
HWY_INLINE void softmax_row(const float* x, float* y, int64_t n, bool log) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V m = hn::Set(d, max_of(x, n));
  V s0 = hn::Zero(d), s1 = s0;
  if (log) {
    for_vectors(d, n, [&](int64_t i, auto part) HWY_ATTR {
      s0 = hn::Add(s0, keep(exp_nonpos(d, hn::Sub(load(d, x + i, part), m)), d, part));
    });
    const V offset = hn::Set(d, std::log(hn::ReduceSum(d, s0)));
    for_vectors(d, n, [&](int64_t i, auto part) HWY_ATTR {
      store(hn::Sub(hn::Sub(load(d, x + i, part), m), offset), d, y + i, part);
    });
    return;
  }
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const V e0 = exp_nonpos(d, hn::Sub(hn::LoadU(d, x + i), m));
    const V e1 = exp_nonpos(d, hn::Sub(hn::LoadU(d, x + i + lanes), m));
    hn::StoreU(e0, d, y + i);
    hn::StoreU(e1, d, y + i + lanes);
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
  }
  for_vectors(d, n - i, [&](int64_t k, auto part) HWY_ATTR {
    const V e = exp_nonpos(d, hn::Sub(load(d, x + i + k, part), m));
    store(e, d, y + i + k, part);
    s0 = hn::Add(s0, keep(e, d, part));
  });
  const V inv = hn::Set(d, 1.0f / hn::ReduceSum(d, hn::Add(s0, s1)));
  for_vectors(d, n, [&](int64_t k, auto part) HWY_ATTR { store(hn::Mul(load(d, y + k, part), inv), d, y + k, part); });
}

/// A vector of neighbouring slices that run down the rows.
template <class P>
HWY_INLINE void softmax_columns(const float* x, float* y, int64_t length, int64_t stride, bool log_of, P part) {
  const D d;
  V m = minus_infinity(), sum = hn::Zero(d);
  for (int64_t k = 0; k < length; ++k) m = hn::Max(m, load(d, x + k * stride, part));
  for (int64_t k = 0; k < length; ++k) {
    const V e = exp_nonpos(d, hn::Sub(load(d, x + k * stride, part), m));
    if (!log_of) store(e, d, y + k * stride, part);
    sum = hn::Add(sum, e);
  }
  if (log_of) {
    const V offset = log(d, sum);
    for (int64_t k = 0; k < length; ++k)
      store(hn::Sub(hn::Sub(load(d, x + k * stride, part), m), offset), d, y + k * stride, part);
  } else {
    const V inv = hn::Div(hn::Set(d, 1.0f), sum);
    for (int64_t k = 0; k < length; ++k) store(hn::Mul(load(d, y + k * stride, part), inv), d, y + k * stride, part);
  }
}

/// Slices are rows when inner is 1, else vectors of columns.
void softmax_slices(const Softmax& s, const float* x, float* y, int64_t begin, int64_t end) {
  if (s.inner == 1) {
    for (int64_t row = begin; row < end; ++row) softmax_row(x + row * s.length, y + row * s.length, s.length, s.log);
    return;
  }
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t blocks = (s.inner + lanes - 1) / lanes;
  for (int64_t slice = begin; slice < end; ++slice) {
    const int64_t column = slice % blocks * lanes, at = slice / blocks * s.length * s.inner + column;
    if (column + lanes <= s.inner)
      softmax_columns(x + at, y + at, s.length, s.inner, s.log, Whole());
    else
      softmax_columns(x + at, y + at, s.length, s.inner, s.log, Part{static_cast<size_t>(s.inner - column)});
  }
}

int64_t float_lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {

HWY_EXPORT(softmax_slices);
HWY_EXPORT(float_lanes);

void softmax(const Softmax& s, const float* x, float* y, ThreadPool& pool) {
  if (s.length == 0) return;
  const auto fn = HWY_DYNAMIC_POINTER(softmax_slices);
  const int64_t lanes = s.inner == 1 ? 1 : HWY_DYNAMIC_DISPATCH(float_lanes)();
  const int64_t slices = s.outer * ((s.inner + lanes - 1) / lanes);
  pool.parallel_for(slices, 1.0 * static_cast<double>(s.length * lanes),
                    [&](int64_t begin, int64_t end) { fn(s, x, y, begin, end); });
}

}  // namespace epona
#endif  // HWY_ONCE
