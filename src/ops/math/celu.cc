#include <cmath>

#include "ops/registry.h"

namespace epona {
namespace {

/// Celu: max(0,x) + min(0, alpha*(exp(x/alpha)-1)), element by element; float only, as in the standard.
class Celu final : public Kernel {
 public:
  explicit Celu(const NodeInfo& info) : alpha_(info.attr("alpha", 1.0f)) {
    if (info.in_type(0) != DataType::float32) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override {
    const float* x = c.data<float>(0);
    float* y = c.out_data<float>(0);
    c.pool().parallel_for(c.in(0).size(), 5, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] > 0 ? x[i] : alpha_ * std::expm1(x[i] / alpha_);
    });
  }

 private:
  float alpha_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(celu) { r.add({.name = "Celu", .since = 12, .make = make_kernel<Celu>, .inplace = 1}); }
