#include <cmath>

#include "ops/elementwise.h"

namespace epona {
namespace {

/// max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).
struct CeluOp {
  static constexpr double kNs = 6;
  float alpha;
  explicit CeluOp(const NodeInfo& info) : alpha(info.attr("alpha", 1.0f)) {}
  template <class T>
  T operator()(T x) const {
    return x > T(0) ? x : static_cast<T>(alpha) * std::expm1(x / static_cast<T>(alpha));
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(celu) { r.add({.name = "Celu", .since = 12, .make = make_kernel<Unary<CeluOp>>, .inplace = 1}); }
