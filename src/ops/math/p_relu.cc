#include "ops/elementwise.h"
#include "ops/integer_math.h"

namespace epona {
namespace {

struct PReluOp {
  static constexpr double kNs = 0.6;
  template <class T>
  T operator()(T x, T slope) const {
    return x < T(0) ? wrap_mul(x, slope) : x;
  }
};

using List = Types<float, double, int32_t, int64_t, uint32_t, uint64_t>;

/// The slope broadcasts to x, never the other way.
class PRelu final : public Kernel {
 public:
  explicit PRelu(const NodeInfo& info) : binary_(info), legacy_(info) {}
  void shapes(ShapeContext& c) const override {
    if (!broadcasts_to(legacy_.second(c.in(0), c.in(1)), c.in(0)))
      c.refuse("slope of shape ", c.in(1), " does not broadcast to the input's shape ", c.in(0));
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override { binary_.run(c); }

 private:
  Binary<PReluOp, List> binary_;
  LegacyBroadcast legacy_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(p_relu) { r.add({.name = "PRelu", .make = make_kernel<PRelu>, .inplace = 1}); }
