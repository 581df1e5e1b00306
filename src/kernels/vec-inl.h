// Loops over fp32 arrays in whole vectors and a last part of one. Include inside a foreach_target file.
#if defined(EPONA_KERNELS_VEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EPONA_KERNELS_VEC_INL_H_
#undef EPONA_KERNELS_VEC_INL_H_
#else
#define EPONA_KERNELS_VEC_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Whole {};
struct Part {
  size_t count;
};

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* x, Whole) {
  return hn::LoadU(d, x);
}
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* x, Part part) {
  return hn::LoadN(d, x, part.count);
}
template <class D>
HWY_INLINE hn::Vec<D> load_or(hn::Vec<D>, D d, const hn::TFromD<D>* x, Whole) {
  return hn::LoadU(d, x);
}
template <class D>
HWY_INLINE hn::Vec<D> load_or(hn::Vec<D> otherwise, D d, const hn::TFromD<D>* x, Part part) {
  return hn::LoadNOr(otherwise, d, x, part.count);
}
template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, hn::TFromD<D>* x, Whole) {
  hn::StoreU(v, d, x);
}
template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, hn::TFromD<D>* x, Part part) {
  hn::StoreN(v, d, x, part.count);
}
/// Zero in the lanes that a part does not have.
template <class D>
HWY_INLINE hn::Vec<D> keep(hn::Vec<D> v, D, Whole) {
  return v;
}
template <class D>
HWY_INLINE hn::Vec<D> keep(hn::Vec<D> v, D d, Part part) {
  return hn::IfThenElseZero(hn::FirstN(d, part.count), v);
}

/// Calls f(i, Whole()) for every whole vector of [0, n) and f(i, Part{count}) for what is left.
template <class D, class F>
HWY_INLINE void for_vectors(D d, int64_t n, F f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(i, Whole());
  if (i < n) f(i, Part{static_cast<size_t>(n - i)});
}

}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#endif  // include guard
