#include "ops/elementwise.h"

namespace epona {
namespace {

struct AndOp {
  static constexpr double kNs = 0.5;
  bool operator()(bool a, bool b) const { return a & b; }
};

struct OrOp {
  static constexpr double kNs = 0.5;
  bool operator()(bool a, bool b) const { return a | b; }
};

struct XorOp {
  static constexpr double kNs = 0.5;
  bool operator()(bool a, bool b) const { return a != b; }
};

struct NotOp {
  static constexpr double kNs = 0.5;
  bool operator()(bool a) const { return !a; }
};

}  // namespace
}  // namespace epona

EPONA_OPS(logical) {
  r.add({.name = "And", .make = make_kernel<Binary<AndOp, Types<bool>>>, .inplace = 3});
  r.add({.name = "Or", .make = make_kernel<Binary<OrOp, Types<bool>>>, .inplace = 3});
  r.add({.name = "Xor", .make = make_kernel<Binary<XorOp, Types<bool>>>, .inplace = 3});
  r.add({.name = "Not", .since = 1, .make = make_kernel<Unary<NotOp, Types<bool>>>, .inplace = 1});
}
