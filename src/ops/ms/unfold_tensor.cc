#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// UnfoldTensor: windows of `size` along a dim, `step` apart, in a new last dim.
class UnfoldTensor final : public Kernel {
 public:
  explicit UnfoldTensor(const NodeInfo& info)
      : axis_(info.attr("dim", -1)), size_(info.attr("size", 0)), step_(info.attr("step", 1)) {
    if (size_ < 1 || step_ < 1) info.refuse(Code::invalid_graph, "size and step must be positive");
  }
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    int axis = resolve_axis(c, axis_, out.rank());
    if (out[axis] < size_) c.refuse("size ", size_, " is larger than axis ", axis, " of input of shape ", out);
    out[axis] = (out[axis] - size_) / step_ + 1;
    out.push_back(size_);
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    int rank = in.shape.rank(), axis = resolve_axis(c, axis_, rank);
    Shape strides = row_major_strides(in.shape), out_strides = row_major_strides(out.shape);
    StridedCopy copy(in.type);
    for (int i = 0; i < rank; ++i) copy.dim(out.shape[i], i == axis ? strides[i] * step_ : strides[i], out_strides[i]);
    copy.dim(size_, strides[axis], 1);
    copy.run(c.pool(), in.data, 0, out.data, 0);
  }

 private:
  int64_t axis_, size_, step_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(unfold_tensor) {
  r.add({.name = "UnfoldTensor", .domain = "com.microsoft", .make = make_kernel<UnfoldTensor>});
}
