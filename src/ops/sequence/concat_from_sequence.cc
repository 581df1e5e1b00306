#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/sequence/sequence_util.h"

namespace epona {
namespace {

/// ConcatFromSequence: the items joined along an axis, or stacked along a new one.
class ConcatFromSequence final : public Kernel {
 public:
  explicit ConcatFromSequence(const NodeInfo& info)
      : axis_(info.attr("axis", 0)), stack_(info.attr("new_axis", 0) != 0) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const std::vector<RuntimeValue>& items = sequence_items(c, 0);
    if (items.empty()) c.refuse("the sequence is empty");
    Shape shape = items[0].tensor.shape;
    int axis = resolve_axis(c, axis_, shape.rank() + stack_);
    if (stack_) shape.insert(axis, 1);
    int64_t total = 0;
    for (const RuntimeValue& item : items) {
      Shape other = item.tensor.shape;
      if (stack_ && axis <= other.rank()) other.insert(axis, 1);
      bool fits = other.rank() == shape.rank() && item.tensor.type == items[0].tensor.type;
      for (int i = 0; fits && i < shape.rank(); ++i) fits = i == axis || other[i] == shape[i];
      if (!fits)
        c.refuse("items of shapes ", items[0].tensor.shape, " and ", item.tensor.shape, " do not fit together");
      total = checked_add(total, other[axis]);
    }
    shape[axis] = total;
    Tensor& out = c.allocate(0, shape, items[0].tensor.type);
    int64_t outer = shape.size(0, axis), row = shape.size(axis, shape.rank()), at = 0;
    for (const RuntimeValue& item : items) {
      int64_t n = outer ? item.tensor.size() / outer : 0;
      StridedCopy copy(out.type);
      copy.dim(outer, n, row);
      copy.dim(n, 1, 1);
      copy.run(c.pool(), item.tensor.data, 0, out.data, at);
      at += n;
    }
  }

 private:
  int64_t axis_;
  bool stack_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(concat_from_sequence) {
  r.add({.name = "ConcatFromSequence", .since = 11, .make = make_kernel<ConcatFromSequence>, .dynamic = true});
}
