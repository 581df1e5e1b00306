#include "ops/elementwise.h"

namespace epona {
namespace {

struct BitwiseAndOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

struct BitwiseOrOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};

struct BitwiseXorOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

struct BitwiseNotOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};

/// Amounts below zero or beyond the width leave what sign extension alone produces: 0, or -1 for a right shift of a
/// negative number.
struct BitShiftOp {
  static constexpr double kNs = 1;
  bool left;
  explicit BitShiftOp(const NodeInfo& info) {
    std::string direction = info.attr("direction", "");
    if (direction != "LEFT" && direction != "RIGHT")
      info.refuse(Code::invalid_argument, "attribute direction is '", direction, "', expected LEFT or RIGHT");
    left = direction == "LEFT";
  }
  template <class T>
  T operator()(T x, T amount) const {
    bool outside = amount >= static_cast<T>(sizeof(T) * 8);
    if constexpr (std::is_signed_v<T>) outside = outside || amount < 0;
    if (outside) return !left && x < T(0) ? static_cast<T>(-1) : T(0);
    if (left) return static_cast<T>(static_cast<uint64_t>(x) << amount);
    return static_cast<T>(x >> amount);
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(bitwise) {
  r.add({.name = "BitwiseAnd", .since = 18, .make = make_kernel<Binary<BitwiseAndOp, IntegerTypes>>, .inplace = 3});
  r.add({.name = "BitwiseOr", .since = 18, .make = make_kernel<Binary<BitwiseOrOp, IntegerTypes>>, .inplace = 3});
  r.add({.name = "BitwiseXor", .since = 18, .make = make_kernel<Binary<BitwiseXorOp, IntegerTypes>>, .inplace = 3});
  r.add({.name = "BitwiseNot", .since = 18, .make = make_kernel<Unary<BitwiseNotOp, IntegerTypes>>, .inplace = 1});
  r.add({.name = "BitShift", .since = 11, .make = make_kernel<Binary<BitShiftOp, IntegerTypes>>, .inplace = 3});
}
