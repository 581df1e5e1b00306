#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/tensor/alias_util.h"

namespace epona {
namespace {

/// Unsqueeze: puts dims of size 1 where `axes` of the output say. Axes: attribute before opset 13.
class Unsqueeze final : public Kernel {
 public:
  explicit Unsqueeze(const NodeInfo& info) : from_attribute_(info.opset() < 13), axes_(info.ints("axes")) {}
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    std::vector<int64_t> axes = from_attribute_ ? axes_ : c.ints(1);
    Shape out(in.rank() + static_cast<int>(axes.size()), -1);
    for (int64_t axis : axes) {
      int i = resolve_axis(c, axis, out.rank());
      if (out[i] == 1) c.refuse("axis ", axis, " is given twice");
      out[i] = 1;
    }
    const int64_t* next = in.begin();
    for (int64_t& dim : out)
      if (dim != 1) dim = *next++;
    c.out(0, out);
  }
  void run(const RunContext& c) const override { copy_through(c); }

 private:
  bool from_attribute_;
  std::vector<int64_t> axes_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(unsqueeze) {
  r.add({.name = "Unsqueeze", .since = 1, .make = make_kernel<Unsqueeze>, .shape_inputs = 2, .alias = 0});
}
