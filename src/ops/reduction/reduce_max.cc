#include <limits>

#include "ops/reduction/reduce_common.h"

namespace epona {
namespace {

using List = Types<float, double, int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t, bool>;

/// The limit that any element replaces: an infinity where the type has one.
template <class T>
constexpr T lowest_value() {
  return std::numeric_limits<T>::has_infinity ? static_cast<T>(-std::numeric_limits<T>::infinity())
                                              : std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T highest_value() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

struct ExtremeRule {
  template <class T>
  using Acc = T;
  template <class A, class T>
  static A map(T x) {
    return x;
  }
  template <class A>
  static A finish(A a, int64_t) {
    return a;
  }
};

/// NaN wins wherever it stands.
struct MaxRule : ExtremeRule {
  template <class A>
  static A start() {
    return lowest_value<A>();
  }
  template <class A>
  static A join(A a, A b) {
    return a > b || a != a ? a : b;
  }
};

struct MinRule : ExtremeRule {
  template <class A>
  static A start() {
    return highest_value<A>();
  }
  template <class A>
  static A join(A a, A b) {
    return a < b || a != a ? a : b;
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(reduce_max) {
  r.add(reduction<Reduce<MaxRule, List>>("ReduceMax"));
  r.add(reduction<Reduce<MinRule, List>>("ReduceMin"));
}
