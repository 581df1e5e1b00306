#include <cmath>

#include "ops/reduction/reduce_common.h"

namespace epona {
namespace {

using List = Types<float, double, int32_t, int64_t, uint32_t, uint64_t>;

struct SumRule {
  template <class T>
  using Acc = WideSum<T>;
  template <class A>
  static A start() {
    return 0;
  }
  template <class A, class T>
  static A map(T x) {
    return static_cast<A>(x);
  }
  template <class A>
  static A join(A a, A b) {
    return wrap_add(a, b);
  }
  template <class A>
  static A finish(A a, int64_t) {
    return a;
  }
};

struct MeanRule : SumRule {
  template <class A>
  static A finish(A a, int64_t count) {
    return safe_div(a, static_cast<A>(count));
  }
};

struct LogSumRule : SumRule {
  template <class A>
  static double finish(A a, int64_t) {
    return std::log(static_cast<double>(a));
  }
};

struct AbsSumRule : SumRule {
  template <class A, class T>
  static A map(T x) {
    if constexpr (std::is_unsigned_v<T>)
      return static_cast<A>(x);
    else
      return x < T(0) ? wrap_neg(static_cast<A>(x)) : static_cast<A>(x);
  }
};

struct SquareSumRule : SumRule {
  template <class A, class T>
  static A map(T x) {
    return wrap_mul(static_cast<A>(x), static_cast<A>(x));
  }
};

struct NormRule : SquareSumRule {
  template <class A>
  static double finish(A a, int64_t) {
    return std::sqrt(static_cast<double>(a));
  }
};

struct ProductRule : SumRule {
  template <class A>
  static A start() {
    return 1;
  }
  template <class A>
  static A join(A a, A b) {
    return wrap_mul(a, b);
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(reduce_sum) {
  r.add(reduction<Reduce<SumRule, List>>("ReduceSum"));
  r.add(reduction<Reduce<MeanRule, List>>("ReduceMean"));
  r.add(reduction<Reduce<LogSumRule, List>>("ReduceLogSum"));
  r.add(reduction<Reduce<AbsSumRule, List>>("ReduceL1"));
  r.add(reduction<Reduce<SquareSumRule, List>>("ReduceSumSquare"));
  r.add(reduction<Reduce<NormRule, List>>("ReduceL2"));
  r.add(reduction<Reduce<ProductRule, List>>("ReduceProd"));
}
