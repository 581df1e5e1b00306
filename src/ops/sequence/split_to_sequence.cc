#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/sequence/sequence_util.h"

namespace epona {
namespace {

/// SplitToSequence: parts of the given sizes (one number: all of that size, the last one may be smaller); without sizes
/// parts of length 1, whose axis goes away with keepdims=0. With sizes keepdims does not matter.
class SplitToSequence final : public Kernel {
 public:
  explicit SplitToSequence(const NodeInfo& info)
      : axis_(info.attr("axis", 0)), drop_axis_(info.attr("keepdims", 1) == 0) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    int rank = in.shape.rank(), axis = resolve_axis(c, axis_, rank);
    int64_t total = in.shape[axis], outer = in.shape.size(0, axis), inner = in.shape.size(axis + 1, rank);
    const Tensor* sizes = c.has(1) ? &c.in(1) : nullptr;
    bool listed = sizes && sizes->shape.rank() == 1;
    int64_t each = 1;
    if (sizes) check_index_type(c, *sizes, "split");
    if (sizes && !listed) {
      each = one_int(c, *sizes, "split");
      if (each <= 0) c.refuse("split must be positive, found ", each);
    }
    std::vector<RuntimeValue> items;
    for (int64_t at = 0, i = 0; listed ? i < sizes->size() : at < total; ++i) {
      int64_t n = listed ? int_at(*sizes, i) : std::min(each, total - at);
      if (n < 0 || n > total - at) c.refuse("the sizes in split do not add up to ", total, " on axis ", axis);
      Shape shape = in.shape;
      shape[axis] = n;
      Tensor part = Tensor::allocate(in.type, shape);
      StridedCopy copy(in.type);
      copy.dim(outer, total * inner, n * inner);
      copy.dim(n * inner, 1, 1);
      copy.run(c.pool(), in.data, at * inner, part.data, 0);
      if (!sizes && drop_axis_) part.shape.erase(axis);
      items.emplace_back(std::move(part));
      at += n;
      if (listed && i + 1 == sizes->size() && at != total)
        c.refuse("the sizes in split add up to ", at, ", axis ", axis, " has ", total);
    }
    c.set(0, RuntimeValue::sequence(in.type, std::move(items)));
  }

 private:
  int64_t axis_;
  bool drop_axis_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(split_to_sequence) {
  r.add({.name = "SplitToSequence", .since = 11, .make = make_kernel<SplitToSequence>, .dynamic = true});
}
