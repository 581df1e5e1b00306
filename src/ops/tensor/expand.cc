#include "kernels/strided_copy.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Expand: repeats dims of size 1 as in broadcasting with a tensor of the given shape.
class Expand final : public Kernel {
 public:
  explicit Expand(const NodeInfo&) {}
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    Shape wanted(c.ints(1));
    Shape out(std::max(in.rank(), wanted.rank()), 1);
    for (int i = 1; i <= out.rank(); ++i) {
      int64_t a = i <= in.rank() ? in[in.rank() - i] : 1, b = i <= wanted.rank() ? wanted[wanted.rank() - i] : 1;
      if (b < 0) c.refuse("negative dimension in the wanted shape ", wanted);
      if (a != b && a != 1 && b != 1) c.refuse("an input of shape ", in, " does not expand to shape ", wanted);
      out[out.rank() - i] = a == 1 ? b : a;
    }
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    int missing = out.shape.rank() - in.shape.rank();
    StridedCopy copy(in.type);
    int64_t in_stride = in.size(), out_stride = out.size();
    for (int i = 0; i < out.shape.rank() && out_stride; ++i) {
      int64_t n = i < missing ? 1 : in.shape[i - missing];
      in_stride /= n;
      out_stride /= out.shape[i];
      copy.dim(out.shape[i], n == 1 ? 0 : in_stride, out_stride);
    }
    if (out.size()) copy.run(c.pool(), in.data, 0, out.data, 0);
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(expand) { r.add({.name = "Expand", .since = 8, .make = make_kernel<Expand>, .shape_inputs = 2}); }
