#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// MaxUnpool: the maxima put back where MaxPool found them, zero elsewhere. The indices count in the shape that follows
/// from kernel, strides and pads; a larger output_shape adds zeros at the end of each dim.
class MaxUnpool final : public Kernel {
 public:
  explicit MaxUnpool(const NodeInfo& info)
      : kernel_(info.ints("kernel_shape")), strides_(info.ints("strides")), pads_(info.ints("pads")) {
    size_t dims = kernel_.size();
    if (strides_.empty()) strides_.assign(dims, 1);
    if (pads_.empty()) pads_.assign(2 * dims, 0);
    if (dims == 0 || strides_.size() != dims || pads_.size() != 2 * dims)
      info.refuse(Code::invalid_graph, "kernel_shape, strides and pads do not fit together");
  }
  void shapes(ShapeContext& c) const override {
    Shape out = inferred(c, c.in(0));
    if (!(c.in(1) == c.in(0))) c.refuse("indices of shape ", c.in(1), " do not fit input of shape ", c.in(0));
    if (c.has(2)) {
      Shape given(c.ints(2));
      bool fits = given.rank() == out.rank();
      for (int i = 0; fits && i < out.rank(); ++i) fits = given[i] >= out[i];
      if (!fits) c.refuse("output_shape ", given, " does not hold the unpooled shape ", out);
      out = given;
    }
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    static constexpr uint64_t kZero = 0;
    const Tensor &in = c.in(0), &indices = c.in(1);
    Tensor& out = c.out(0);
    Shape inner = inferred(c, in.shape);
    int64_t total = inner.size();
    bool same = inner == out.shape;
    fill_elements(out.type, out.size(), &kZero, out.data);
    Shape strides = row_major_strides(out.shape);
    for (int64_t i = 0, n = in.size(); i < n; ++i) {
      int64_t at = indices.as<int64_t>()[i], to = at;
      if (at < 0 || at >= total) c.refuse("index ", at, " is out of range [0,", total - 1, "]");
      if (!same) {
        to = 0;
        for (int d = inner.rank() - 1; d >= 0; at /= inner[d], --d) to += at % inner[d] * strides[d];
      }
      copy_elements(out.type, 1, in.data, i, out.data, to);
    }
  }

 private:
  template <class Context>
  Shape inferred(const Context& c, const Shape& in) const {
    int dims = static_cast<int>(kernel_.size());
    if (in.rank() != dims + 2) c.refuse("an input of shape ", in, " does not fit a kernel of ", dims, " dims");
    Shape out = in;
    for (int i = 0; i < dims; ++i) {
      out[2 + i] = checked_mul(in[2 + i] - 1, strides_[i]) - pads_[i] - pads_[i + dims] + kernel_[i];
      if (out[2 + i] < 0) c.refuse("the unpooled shape ", out, " has a negative dimension");
    }
    return out;
  }
  std::vector<int64_t> kernel_, strides_, pads_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(max_unpool) { r.add({.name = "MaxUnpool", .since = 9, .make = make_kernel<MaxUnpool>, .shape_inputs = 4}); }
