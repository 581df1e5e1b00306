#include "kernels/norm.h"
#include "ops/float_io.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// LayerNormalization, RMSNormalization and SimplifiedLayerNormalization whose scale and bias are one row.
class FastLayerNorm final : public Kernel {
 public:
  FastLayerNorm(const NodeInfo& info, KernelPtr portable)
      : portable_(std::move(portable)),
        axis_(info.attr("axis", -1)),
        epsilon_(info.attr("epsilon", 1e-5f)),
        rms_(info.node().op != "LayerNormalization") {}
  void shapes(ShapeContext& c) const override { portable_->shapes(c); }
  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + x.rank() : axis_);
    for (int i : {1, 2})
      if (c.has(i) && !is_row(c.in(i).shape, x, axis)) return portable_->run(c);
    FloatIo io(c, 0);
    LayerNorm n{.rows = x.size(0, axis),
                .size = x.size(axis, x.rank()),
                .epsilon = epsilon_,
                .rms = rms_,
                .scale = io.in<float>(1),
                .bias = io.in<float>(2)};
    const float* from = io.in<float>(0);
    float* to = io.out<float>(0);
    if (!rms_) n.mean_out = io.out<float>(1);
    n.inv_std_out = io.out<float>(rms_ ? 1 : 2);
    layer_norm(n, from, to, c.pool());
    io.store();
  }

 private:
  /// Whether a scale or bias has the dims of x from the axis on, and otherwise only ones.
  static bool is_row(const Shape& p, const Shape& x, int axis) {
    const int own = x.rank() - axis;
    if (p.rank() < own) return false;
    for (int d = 1; d <= p.rank(); ++d)
      if (p[p.rank() - d] != (d <= own ? x[x.rank() - d] : 1)) return false;
    return true;
  }

  KernelPtr portable_;
  int64_t axis_;
  float epsilon_;
  bool rms_;
};

KernelPtr make(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  if (portable && info.in_type(0) != DataType::float64)
    return std::make_unique<FastLayerNorm>(info, std::move(portable));
  reason = cat("type ", info.in_type(0));
  return nullptr;
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(layer_norm) {
  for (const char* name : {"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"})
    r.add({.name = name, .make = make});
}
