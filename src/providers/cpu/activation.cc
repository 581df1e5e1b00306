#include "kernels/activation.h"

#include "passes/activation_attribute.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// Activation: an element-wise function made by passes (see passes/activation_attribute.h).
class ActivationKernel final : public Kernel {
 public:
  explicit ActivationKernel(const NodeInfo& info) : activation_(read_activation(info)) {}

  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }

  void run(const RunContext& c) const override {
    const float* x = c.data<float>(0);
    float* y = c.out_data<float>(0);
    c.pool().parallel_for(c.in(0).size(), activation_ns(activation_.kind), [&](int64_t begin, int64_t end) {
      activate(activation_, x + begin, y + begin, end - begin);
    });
  }

 private:
  Activation activation_;
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(activation) { r.add_internal({.name = "Activation", .make = make_kernel<ActivationKernel>, .inplace = 1}); }
