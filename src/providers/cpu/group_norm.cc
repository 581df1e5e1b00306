#include "kernels/norm.h"
#include "ops/float_io.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// InstanceNormalization, and GroupNormalization with a scale for every channel.
class FastGroupNorm final : public Kernel {
 public:
  FastGroupNorm(const NodeInfo& info, KernelPtr portable)
      : portable_(std::move(portable)), epsilon_(info.attr("epsilon", 1e-5f)), groups_(info.attr("num_groups", 0)) {}
  void shapes(ShapeContext& c) const override { portable_->shapes(c); }
  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    if (x.size() == 0) return;
    FloatIo io(c, 0);
    const float* from = io.in<float>(0);
    const GroupNorm n{.batch = x[0],
                      .channels = x[1],
                      .spatial = x.size(2, x.rank()),
                      .groups = groups_ ? groups_ : x[1],
                      .epsilon = epsilon_,
                      .scale = io.in<float>(1),
                      .bias = io.in<float>(2)};
    group_norm(n, from, io.out<float>(0), c.pool());
    io.store();
  }

 private:
  KernelPtr portable_;
  float epsilon_;
  int64_t groups_;
};

KernelPtr make(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  if (!portable || info.in_type(0) == DataType::float64) {
    reason = cat("type ", info.in_type(0));
    return nullptr;
  }
  if (info.node().op == "GroupNormalization" && info.opset() < 21) {
    reason = "one scale for a whole group";
    return nullptr;
  }
  return std::make_unique<FastGroupNorm>(info, std::move(portable));
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(group_norm) {
  for (const char* name : {"InstanceNormalization", "GroupNormalization"}) r.add({.name = name, .make = make});
}
