#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Compress: the slices along an axis (without axis: the elements of the flattened input) whose condition is true. A
/// condition shorter than the axis counts as false behind its end.
class Compress final : public Kernel {
 public:
  explicit Compress(const NodeInfo& info) : axis_(info.attr("axis", 0)), flat_(!info.has_attr("axis")) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Tensor &in = c.in(0), &condition = c.in(1);
    if (condition.shape.rank() != 1) c.refuse("the condition must have one dim, found shape ", condition.shape);
    int rank = in.shape.rank(), axis = flat_ ? 0 : resolve_axis(c, axis_, rank);
    int64_t dim = flat_ ? in.size() : in.shape[axis], outer = flat_ ? 1 : in.shape.size(0, axis);
    int64_t inner = flat_ ? 1 : in.shape.size(axis + 1, rank), length = condition.size(), kept = 0;
    const bool* take = condition.as<bool>();
    for (int64_t i = 0; i < length; ++i) {
      if (take[i] && i >= dim) c.refuse("the condition is true at ", i, " of an axis of ", dim);
      kept += take[i];
    }
    Shape shape{kept};
    if (!flat_) {
      shape = in.shape;
      shape[axis] = kept;
    }
    Tensor& out = c.allocate(0, shape, in.type);
    int64_t to = 0;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < std::min(length, dim); ++i) {
        if (!take[i]) continue;
        copy_elements(in.type, inner, in.data, (o * dim + i) * inner, out.data, to);
        to += inner;
      }
  }

 private:
  int64_t axis_;
  bool flat_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(compress) { r.add({.name = "Compress", .since = 9, .make = make_kernel<Compress>, .dynamic = true}); }
