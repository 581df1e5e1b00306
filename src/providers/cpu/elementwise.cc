#include "providers/cpu/cpu_registry.h"
#include "providers/cpu/element_step.h"

namespace epona::cpu {
namespace {

/// A floating-point element-wise operator, run as a program over tiles.
class Elementwise final : public Kernel {
 public:
  Elementwise(ElementSteps steps, KernelPtr portable)
      : inputs_(std::move(steps.inputs)),
        program_(static_cast<int>(inputs_.size()), steps.steps),
        portable_(std::move(portable)) {}

  void shapes(ShapeContext& c) const override { portable_->shapes(c); }

  void run(const RunContext& c) const override {
    Tensor& y = c.out(0);
    const int count = program_.inputs();
    Dims dims[EwProgram::kMaxInputs];
    const void* data[EwProgram::kMaxInputs];
    DataType types[EwProgram::kMaxInputs];
    for (int i = 0; i < count; ++i) {
      const Tensor& x = c.in(inputs_[static_cast<size_t>(i)]);
      dims[i] = x.shape.dims();
      data[i] = x.data;
      types[i] = x.type;
    }
    BroadcastPlan plan;
    if (!plan_broadcast(y.shape.dims(), {dims, static_cast<size_t>(count)}, plan)) return portable_->run(c);
    program_.run(plan, data, types, y.data, y.type, c.pool());
  }

 private:
  std::vector<int> inputs_;
  EwProgram program_;
  KernelPtr portable_;
};

bool is_computed(DataType type) {
  return type == DataType::float32 || type == DataType::float16 || type == DataType::bfloat16;
}

KernelPtr make(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  auto steps = element_steps(info.graph(), info.node());
  if (!steps || !portable) return nullptr;
  if (!EwProgram::fits(static_cast<int>(steps->inputs.size()), steps->steps)) {
    reason = "too many inputs";
    return nullptr;
  }
  const bool where = info.node().op == "Where";
  for (int i : steps->inputs) {
    const DataType type = info.in_type(i);
    if (is_computed(type) || (where && i == 0 && type == DataType::boolean)) continue;
    reason = cat("type ", type);
    return nullptr;
  }
  const DataType out = info.out_type(0);
  if (!is_computed(out) && out != DataType::boolean) {
    reason = cat("type ", out);
    return nullptr;
  }
  return std::make_unique<Elementwise>(std::move(*steps), std::move(portable));
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(elementwise) {
  // clang-format off
  for (const char* name :
       {"Abs", "Add", "Ceil", "Celu", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater",
        "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min",
        "Mish", "Mul", "Neg", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
        "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tanh", "ThresholdedRelu", "Where"})
    r.add({.name = name, .make = make});
  // clang-format on
  for (const char* name : {"Gelu", "FastGelu", "QuickGelu"})
    r.add({.name = name, .domain = "com.microsoft", .make = make});
}
