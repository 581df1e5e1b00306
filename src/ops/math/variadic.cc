#include "ops/elementwise.h"
#include "ops/integer_math.h"

namespace epona {
namespace {

using Numbers = decltype(Types<float, double>{} + IntegerTypes{});

struct SumOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

struct MeanOp : SumOp {
  template <class T>
  T finish(T x, int count) const {
    return x / static_cast<T>(count);
  }
};

/// A NaN operand gives NaN.
struct MaxOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};

struct MinOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

}  // namespace
}  // namespace epona

// Only the first operand may share the output's memory: later ones are read after parts of the output are written.
EPONA_OPS(variadic) {
  r.add({.name = "Sum", .since = 6, .make = make_kernel<Variadic<SumOp>>, .inplace = 1});
  r.add({.name = "Mean", .since = 6, .make = make_kernel<Variadic<MeanOp>>, .inplace = 1});
  r.add({.name = "Max", .since = 6, .make = make_kernel<Variadic<MaxOp, Numbers>>, .inplace = 1});
  r.add({.name = "Min", .since = 6, .make = make_kernel<Variadic<MinOp, Numbers>>, .inplace = 1});
}
