#include "kernels/strided_copy.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// ConstantOfShape: a tensor of the given shape filled with `value` (float zero without it).
class ConstantOfShape final : public Kernel {
 public:
  explicit ConstantOfShape(const NodeInfo& info) {
    const Tensor* value = info.tensor_attr("value");
    value_ = value ? *value : Tensor::scalar(0.0f);
    if (value_.size() != 1) info.refuse(Code::invalid_graph, "value must have one element, found shape ", value_.shape);
  }
  void shapes(ShapeContext& c) const override {
    Shape out(c.ints(0));
    for (int64_t dim : out)
      if (dim < 0) c.refuse("negative dimension in the wanted shape ", out);
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    fill_elements(value_.type, c.out(0).size(), value_.data, c.out(0).data);
  }

 private:
  Tensor value_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(constant_of_shape) {
  r.add({.name = "ConstantOfShape", .since = 9, .make = make_kernel<ConstantOfShape>, .shape_inputs = 1});
}
