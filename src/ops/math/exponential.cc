#include <cmath>

#include "ops/elementwise.h"

namespace epona {
namespace {

struct ExpOp {
  static constexpr double kNs = 5;
  template <class T>
  T operator()(T x) const {
    return std::exp(x);
  }
};

struct LogOp {
  static constexpr double kNs = 5;
  template <class T>
  T operator()(T x) const {
    return std::log(x);
  }
};

struct SqrtOp {
  static constexpr double kNs = 1;
  template <class T>
  T operator()(T x) const {
    return std::sqrt(x);
  }
};

struct ReciprocalOp {
  static constexpr double kNs = 1;
  template <class T>
  T operator()(T x) const {
    return T(1) / x;
  }
};

struct ErfOp {
  static constexpr double kNs = 8;
  template <class T>
  T operator()(T x) const {
    return std::erf(x);
  }
};

struct TanhOp {
  static constexpr double kNs = 8;
  template <class T>
  T operator()(T x) const {
    return std::tanh(x);
  }
};

struct SigmoidOp {
  static constexpr double kNs = 6;
  template <class T>
  T operator()(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
};

template <class Op>
OpDef unary(const char* name, int since) {
  return {.name = name, .since = since, .make = make_kernel<Unary<Op>>, .inplace = 1};
}

}  // namespace
}  // namespace epona

EPONA_OPS(exponential) {
  r.add(unary<ExpOp>("Exp", 6));
  r.add(unary<LogOp>("Log", 6));
  r.add(unary<SqrtOp>("Sqrt", 6));
  r.add(unary<ReciprocalOp>("Reciprocal", 6));
  r.add(unary<ErfOp>("Erf", 9));
  r.add(unary<TanhOp>("Tanh", 6));
  r.add(unary<SigmoidOp>("Sigmoid", 6));
}
