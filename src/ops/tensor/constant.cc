#include "kernels/strided_copy.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Constant: the tensor of whichever value attribute is there. (The loader turns most into initialisers.)
class Constant final : public Kernel {
 public:
  explicit Constant(const NodeInfo& info) : value_(value_of(info)) {}
  void shapes(ShapeContext& c) const override { c.out(0, value_.shape); }
  void run(const RunContext& c) const override {
    copy_elements(value_.type, value_.size(), value_.data, 0, c.out(0).data, 0);
  }

 private:
  static Tensor value_of(const NodeInfo& info) {
    if (const Tensor* tensor = info.tensor_attr("value")) return *tensor;
    if (info.has_attr("value_float")) return Tensor::scalar(info.attr("value_float", 0.0f));
    if (info.has_attr("value_int")) return Tensor::scalar(info.attr("value_int", int64_t{0}));
    if (info.has_attr("value_string")) return Tensor::scalar(info.attr("value_string", ""));
    if (info.has_attr("value_floats")) return list(info.floats("value_floats"));
    if (info.has_attr("value_ints")) return list(info.ints("value_ints"));
    if (info.has_attr("value_strings")) return list(info.strings("value_strings"));
    info.refuse(Code::not_implemented, "no value attribute of a known kind");
  }
  template <class T>
  static Tensor list(const std::vector<T>& values) {
    return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
  }
  Tensor value_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(constant) { r.add({.name = "Constant", .since = 1, .make = make_kernel<Constant>}); }
