#include "kernels/strided_copy.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Transpose: output dim i is input dim perm[i]; without perm the dims are reversed.
class Transpose final : public Kernel {
 public:
  explicit Transpose(const NodeInfo& info) : perm_(info.ints("perm")), given_(info.has_attr("perm")) {
    std::vector<bool> seen(perm_.size());
    for (int64_t axis : perm_) {
      if (axis < 0 || axis >= static_cast<int64_t>(perm_.size()) || seen[axis])
        info.refuse(Code::invalid_graph, "perm ", Shape(perm_), " is not a permutation");
      seen[axis] = true;
    }
  }
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    if (given_ && static_cast<int>(perm_.size()) != in.rank())
      c.refuse("perm ", Shape(perm_), " does not fit input of shape ", in);
    Shape out = in;
    for (int i = 0; i < in.rank(); ++i) out[i] = in[source(i, in.rank())];
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    Shape in_strides = row_major_strides(in.shape), out_strides = row_major_strides(out.shape);
    StridedCopy copy(in.type);
    for (int i = 0; i < out.shape.rank(); ++i)
      copy.dim(out.shape[i], in_strides[source(i, out.shape.rank())], out_strides[i]);
    copy.run(c.pool(), in.data, 0, out.data, 0);
  }

 private:
  int source(int i, int rank) const { return given_ ? static_cast<int>(perm_[i]) : rank - 1 - i; }
  std::vector<int64_t> perm_;
  bool given_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(transpose) { r.add({.name = "Transpose", .since = 1, .make = make_kernel<Transpose>}); }
