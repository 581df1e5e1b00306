#include "ops/elementwise.h"
#include "ops/integer_math.h"

namespace epona {
namespace {

using Numbers = decltype(Types<float, double>{} + IntegerTypes{});

struct AddOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a, T b) const {
    return wrap_add(a, b);
  }
};

struct SubOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a, T b) const {
    return wrap_sub(a, b);
  }
};

struct MulOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T a, T b) const {
    return wrap_mul(a, b);
  }
};

/// Integers divide towards zero; a zero divisor gives zero, as in numpy.
struct DivOp {
  static constexpr double kNs = 1;
  template <class T>
  T operator()(T a, T b) const {
    return safe_div(a, b);
  }
};

template <class Op>
OpDef binary(const char* name) {
  return {.name = name, .make = make_kernel<Binary<Op, Numbers>>, .inplace = 3};
}

}  // namespace
}  // namespace epona

EPONA_OPS(arithmetic) {
  r.add(binary<AddOp>("Add"));
  r.add(binary<SubOp>("Sub"));
  r.add(binary<MulOp>("Mul"));
  r.add(binary<DivOp>("Div"));
}
