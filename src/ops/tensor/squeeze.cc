#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/tensor/alias_util.h"

namespace epona {
namespace {

/// Squeeze: drops the named dims of size 1, or all of them when none is named. Axes: attribute before opset 13.
class Squeeze final : public Kernel {
 public:
  explicit Squeeze(const NodeInfo& info) : from_attribute_(info.opset() < 13), axes_(info.ints("axes")) {}
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    std::vector<int64_t> axes = from_attribute_ || !c.has(1) ? axes_ : c.ints(1);
    bool all = from_attribute_ ? axes.empty() : !c.has(1);
    Shape drop(in.rank(), 0);
    for (int64_t axis : axes) {
      int i = resolve_axis(c, axis, in.rank());
      if (in[i] != 1) c.refuse("axis ", axis, " of input of shape ", in, " is not 1");
      drop[i] = 1;
    }
    Shape out;
    for (int i = 0; i < in.rank(); ++i)
      if (all ? in[i] != 1 : !drop[i]) out.push_back(in[i]);
    c.out(0, out);
  }
  void run(const RunContext& c) const override { copy_through(c); }

 private:
  bool from_attribute_;
  std::vector<int64_t> axes_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(squeeze) {
  r.add({.name = "Squeeze", .since = 1, .make = make_kernel<Squeeze>, .shape_inputs = 2, .alias = 0});
}
