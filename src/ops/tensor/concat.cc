#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Concat along an axis (attribute; default 1 in opset 1).
class Concat final : public Kernel {
 public:
  explicit Concat(const NodeInfo& info) : axis_(info.attr("axis", 1)) {}
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    int axis = resolve_axis(c, axis_, out.rank());
    for (int i = 1; i < c.inputs(); ++i) {
      const Shape& in = c.in(i);
      bool fits = in.rank() == out.rank();
      for (int d = 0; fits && d < out.rank(); ++d) fits = d == axis || in[d] == out[d];
      if (!fits)
        c.refuse("input ", i, " of shape ", in, " does not fit input 0 of shape ", c.in(0), " along axis ", axis);
      out[axis] = checked_add(out[axis], in[axis]);
    }
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    Tensor& out = c.out(0);
    int axis = resolve_axis(c, axis_, out.shape.rank());
    int64_t outer = out.shape.size(0, axis), row = out.shape.size(axis, out.shape.rank()), at = 0;
    for (int i = 0; i < c.inputs(); ++i) {
      const Tensor& in = c.in(i);
      int64_t n = in.shape.size(axis, in.shape.rank());
      StridedCopy copy(out.type);
      copy.dim(outer, n, row);
      copy.dim(n, 1, 1);
      copy.run(c.pool(), in.data, 0, out.data, at);
      at += n;
    }
  }

 private:
  int64_t axis_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(concat) { r.add({.name = "Concat", .since = 1, .make = make_kernel<Concat>}); }
