#include "kernels/softmax.h"

#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// Softmax and LogSoftmax; before opset 13 over all dims from the axis on, flattened.
class FastSoftmax final : public Kernel {
 public:
  FastSoftmax(const NodeInfo& info, KernelPtr portable)
      : portable_(std::move(portable)), flatten_(info.opset() < 13), log_(info.node().op == "LogSoftmax") {
    axis_ = info.attr("axis", flatten_ ? 1 : -1);
  }
  void shapes(ShapeContext& c) const override { portable_->shapes(c); }
  void run(const RunContext& c) const override {
    const Shape& shape = c.in(0).shape;
    const int rank = shape.rank(), axis = static_cast<int>(axis_ < 0 ? axis_ + rank : axis_);
    Softmax s{.outer = shape.size(0, axis), .length = 1, .log = log_};
    if (axis < rank) {
      s.length = flatten_ ? shape.size(axis, rank) : shape[axis];
      s.inner = flatten_ ? 1 : shape.size(axis + 1, rank);
    }
    softmax(s, c.data<float>(0), c.out_data<float>(0), c.pool());
  }

 private:
  KernelPtr portable_;
  bool flatten_, log_;
  int64_t axis_;
};

KernelPtr make(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  if (info.in_type(0) == DataType::float32 && portable) return std::make_unique<FastSoftmax>(info, std::move(portable));
  reason = cat("type ", info.in_type(0));
  return nullptr;
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(softmax) {
  for (const char* name : {"Softmax", "LogSoftmax"}) r.add({.name = name, .make = make});
}
