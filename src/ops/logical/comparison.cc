#include "ops/elementwise.h"

namespace epona {
namespace {

using Numbers = decltype(Types<float, double>{} + IntegerTypes{});

struct EqualOp {
  static constexpr double kNs = 0.5;
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return a == b;
  }
};

struct LessOp {
  static constexpr double kNs = 0.5;
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};

struct LessOrEqualOp {
  static constexpr double kNs = 0.5;
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};

struct GreaterOp {
  static constexpr double kNs = 0.5;
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};

struct GreaterOrEqualOp {
  static constexpr double kNs = 0.5;
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(comparison) {
  using Anything = decltype(Numbers{} + Types<bool, std::string>{});
  r.add({.name = "Equal", .make = make_kernel<Binary<EqualOp, Anything>>});
  r.add({.name = "Less", .make = make_kernel<Binary<LessOp, Numbers>>});
  r.add({.name = "LessOrEqual", .since = 12, .make = make_kernel<Binary<LessOrEqualOp, Numbers>>});
  r.add({.name = "Greater", .make = make_kernel<Binary<GreaterOp, Numbers>>});
  r.add({.name = "GreaterOrEqual", .since = 12, .make = make_kernel<Binary<GreaterOrEqualOp, Numbers>>});
}
