#include <cmath>

#include "ops/elementwise.h"

namespace epona {
namespace {

/// Swish of the gate times the value.
struct SwiGluOp {
  static constexpr double kNs = 8;
  float alpha;
  explicit SwiGluOp(const NodeInfo& info) : alpha(info.attr("alpha", 1.0f)) {}
  template <class T>
  T operator()(T gate, T value) const {
    return gate / (T(1) + std::exp(-static_cast<T>(alpha) * gate)) * value;
  }
};

class SwiGlu final : public Kernel {
 public:
  explicit SwiGlu(const NodeInfo& info) : binary_(info) {}
  void shapes(ShapeContext& c) const override {
    if (c.in(0) != c.in(1)) c.refuse("gate of shape ", c.in(0), " and value of shape ", c.in(1), " differ");
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override { binary_.run(c); }

 private:
  Binary<SwiGluOp> binary_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(swi_glu) { r.add({.name = "SwiGLU", .since = 28, .make = make_kernel<SwiGlu>, .inplace = 3}); }
