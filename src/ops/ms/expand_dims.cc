#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/tensor/alias_util.h"

namespace epona {
namespace {

/// ExpandDims: a dim of size 1 at the place that the axis input names.
class ExpandDims final : public Kernel {
 public:
  explicit ExpandDims(const NodeInfo&) {}
  void shapes(ShapeContext& c) const override {
    if (!c.value(1)) c.refuse("axis must be given");
    Shape out = c.in(0);
    out.insert(resolve_axis(c, one_int(c, *c.value(1), "axis"), out.rank() + 1), 1);
    c.out(0, out);
  }
  void run(const RunContext& c) const override { copy_through(c); }
};

}  // namespace
}  // namespace epona

EPONA_OPS(expand_dims) {
  r.add({.name = "ExpandDims",
         .domain = "com.microsoft",
         .make = make_kernel<ExpandDims>,
         .shape_inputs = 2,
         .alias = 0});
}
