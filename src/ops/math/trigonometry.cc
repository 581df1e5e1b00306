#include <cmath>

#include "ops/elementwise.h"

namespace epona {
namespace {

// One function of <cmath> per operator; all take the four float types.
// clang-format off
#define EPONA_TRIGONOMETRY(F) \
  F(Sin, sin, 7) F(Cos, cos, 7) F(Tan, tan, 7) F(Asin, asin, 7) F(Acos, acos, 7) F(Atan, atan, 7) F(Sinh, sinh, 9) \
  F(Cosh, cosh, 9) F(Asinh, asinh, 9) F(Acosh, acosh, 9) F(Atanh, atanh, 9)
// clang-format on

#define EPONA_DEFINE(Name, function, since_version) \
  struct Name##Op {                                 \
    static constexpr double kNs = 8;                \
    template <class T>                              \
    T operator()(T x) const {                       \
      return std::function(x);                      \
    }                                               \
  };
EPONA_TRIGONOMETRY(EPONA_DEFINE)

}  // namespace
}  // namespace epona

EPONA_OPS(trigonometry) {
#define EPONA_ADD(Name, function, since_version) \
  r.add({.name = #Name, .since = since_version, .make = make_kernel<Unary<Name##Op>>, .inplace = 1});
  EPONA_TRIGONOMETRY(EPONA_ADD)
}
