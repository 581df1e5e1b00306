#include "ops/registry.h"
#include "ops/tensor/alias_util.h"

namespace epona {
namespace {

/// Reshape: 0 copies a dim of the input (unless allowzero), one -1 takes what is left.
class Reshape final : public Kernel {
 public:
  explicit Reshape(const NodeInfo& info)
      : allow_zero_(info.attr("allowzero", 0) != 0), from_attribute_(info.opset() < 5), shape_(info.ints("shape")) {}

  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    Shape out(from_attribute_ ? shape_ : c.ints(1));
    int64_t known = 1;
    int infer = -1;
    for (int i = 0; i < out.rank(); ++i) {
      if (out[i] == -1) {
        if (infer >= 0) c.refuse("more than one -1 in the wanted shape ", out);
        infer = i;
        continue;
      }
      if (out[i] < -1) c.refuse("negative dimension in the wanted shape ", out);
      if (out[i] == 0 && !allow_zero_) {
        if (i >= in.rank()) c.refuse("the wanted shape ", out, " copies dim ", i, " of an input of shape ", in);
        out[i] = in[i];
      }
      known = checked_mul(known, out[i]);
    }
    int64_t total = in.size();
    if (infer >= 0) {
      // With a zero among the other dims any number would do; zero keeps the count right.
      if (known == 0 ? total != 0 : total % known != 0)
        c.refuse("an input of shape ", in, " does not fit the wanted shape ", out);
      out[infer] = known == 0 ? 0 : total / known;
      known *= out[infer];
    }
    if (known != total) c.refuse("an input of shape ", in, " does not fit the wanted shape ", out);
    c.out(0, out);
  }
  void run(const RunContext& c) const override { copy_through(c); }

 private:
  bool allow_zero_, from_attribute_;
  std::vector<int64_t> shape_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(reshape) {
  r.add({.name = "Reshape", .since = 1, .make = make_kernel<Reshape>, .shape_inputs = 2, .alias = 0});
}
