#include <cmath>

#include "ops/elementwise.h"
#include "ops/integer_math.h"

namespace epona {
namespace {

struct AbsOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_unsigned_v<T>)
      return x;
    else if constexpr (std::is_integral_v<T>)
      return x < 0 ? wrap_neg(x) : x;
    else
      return std::abs(x);
  }
};

struct NegOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_integral_v<T>)
      return wrap_neg(x);
    else
      return -x;
  }
};

/// -1, 0 or 1; NaN stays NaN.
struct SignOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T x) const {
    if (x != x) return x;
    return static_cast<T>((x > T(0)) - (x < T(0)));
  }
};

struct CeilOp {
  static constexpr double kNs = 1;
  template <class T>
  T operator()(T x) const {
    return std::ceil(x);
  }
};

struct FloorOp {
  static constexpr double kNs = 1;
  template <class T>
  T operator()(T x) const {
    return std::floor(x);
  }
};

/// Halves go to the even neighbour.
struct RoundOp {
  static constexpr double kNs = 1;
  template <class T>
  T operator()(T x) const {
    return std::nearbyint(x);
  }
};

using Floats = Types<float, double>;

}  // namespace
}  // namespace epona

EPONA_OPS(sign) {
  using Numbers = decltype(Floats{} + IntegerTypes{});
  using Signed = decltype(Floats{} + SignedTypes{});
  r.add({.name = "Abs", .since = 6, .make = make_kernel<Unary<AbsOp, Numbers>>, .inplace = 1});
  r.add({.name = "Neg", .since = 6, .make = make_kernel<Unary<NegOp, Signed>>, .inplace = 1});
  r.add({.name = "Sign", .since = 9, .make = make_kernel<Unary<SignOp, Numbers>>, .inplace = 1});
  r.add({.name = "Ceil", .since = 6, .make = make_kernel<Unary<CeilOp>>, .inplace = 1});
  r.add({.name = "Floor", .since = 6, .make = make_kernel<Unary<FloorOp>>, .inplace = 1});
  r.add({.name = "Round", .since = 11, .make = make_kernel<Unary<RoundOp>>, .inplace = 1});
}
