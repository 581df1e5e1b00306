#include "ops/registry.h"
#include "ops/tensor/alias_util.h"

namespace epona {
namespace {

/// Flatten: a matrix of the dims before and from `axis`; axis == rank is allowed.
class Flatten final : public Kernel {
 public:
  explicit Flatten(const NodeInfo& info) : axis_(info.attr("axis", 1)) {}
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    int rank = in.rank();
    if (axis_ < -rank || axis_ > rank)
      c.refuse("axis ", axis_, " is out of range [", -rank, ",", rank, "] for input of shape ", in);
    int axis = static_cast<int>(axis_ < 0 ? axis_ + rank : axis_);
    c.out(0, {in.size(0, axis), in.size(axis, rank)});
  }
  void run(const RunContext& c) const override { copy_through(c); }

 private:
  int64_t axis_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(flatten) { r.add({.name = "Flatten", .since = 1, .make = make_kernel<Flatten>, .alias = 0}); }
