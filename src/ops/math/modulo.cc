#include <cmath>

#include "ops/elementwise.h"
#include "ops/integer_math.h"

namespace epona {
namespace {

/// fmod = 0: the result has the sign of the divisor; 1: that of the dividend. An integer zero divisor gives zero.
struct ModOp {
  static constexpr double kNs = 5;
  bool truncate;
  explicit ModOp(const NodeInfo& info) : truncate(info.attr("fmod", 0) != 0) {}
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      T rest = safe_rem(a, b);
      if constexpr (std::is_signed_v<T>)
        if (!truncate && rest != 0 && (rest < 0) != (b < 0)) rest = static_cast<T>(rest + b);
      return rest;
    } else {
      T rest = std::fmod(a, b);
      if (truncate) return rest;
      if (rest == T(0)) return std::copysign(T(0), b);
      return (rest < T(0)) != (b < T(0)) ? rest + b : rest;
    }
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(modulo) {
  using Numbers = decltype(Types<float, double>{} + IntegerTypes{});
  r.add({.name = "Mod", .since = 10, .make = make_kernel<Binary<ModOp, Numbers>>, .inplace = 3});
}
