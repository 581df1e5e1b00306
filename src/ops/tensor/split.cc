#include <algorithm>

#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Split along an axis into parts of given sizes or into equal parts. The sizes: attribute or input 1 in opset 1,
/// attribute to 12, input from 13. From opset 18 num_outputs parts may be asked for, the last one smaller.
class Split final : public Kernel {
 public:
  explicit Split(const NodeInfo& info)
      : axis_(info.attr("axis", 0)),
        parts_(info.outputs()),
        uneven_(info.has_attr("num_outputs")),
        sizes_(info.ints("split")) {
    if (uneven_ && info.attr("num_outputs", 0) != parts_)
      info.refuse(Code::invalid_graph, "num_outputs is ", info.attr("num_outputs", 0), " but the node has ", parts_,
                  " outputs");
  }
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    int axis = resolve_axis(c, axis_, in.rank());
    int64_t total = in[axis];
    std::vector<int64_t> sizes = c.has(1) ? c.ints(1) : sizes_;
    if (sizes.empty()) {
      int64_t part = (total + parts_ - 1) / parts_;
      if (!uneven_ && total % parts_)
        c.refuse("axis ", axis, " of input of shape ", in, " does not split into ", parts_, " equal parts");
      for (int64_t i = 0, left = total; i < parts_; ++i, left -= sizes.back()) sizes.push_back(std::min(part, left));
    }
    int64_t sum = 0;
    for (int64_t size : sizes) {
      if (size < 0) c.refuse("a part has the negative size ", size);
      sum = checked_add(sum, size);
    }
    if (static_cast<int64_t>(sizes.size()) != parts_ || sum != total)
      c.refuse("the sizes ", Shape(sizes), " do not split axis ", axis, " of input of shape ", in, " into ", parts_,
               " parts");
    for (int i = 0; i < c.outputs(); ++i) {
      Shape out = in;
      out[axis] = sizes[i];
      c.out(i, out);
    }
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    int rank = in.shape.rank(), axis = resolve_axis(c, axis_, rank);
    int64_t outer = in.shape.size(0, axis), inner = in.shape.size(axis + 1, rank), row = in.shape[axis] * inner, at = 0;
    for (int i = 0; i < c.outputs(); ++i) {
      int64_t n;
      if (c.wants(i)) {
        Tensor& out = c.out(i);
        n = out.shape[axis] * inner;
        StridedCopy copy(in.type);
        copy.dim(outer, row, n);
        copy.dim(n, 1, 1);
        copy.run(c.pool(), in.data, at, out.data, 0);
      } else {
        n = part_size(c, i, in.shape[axis]) * inner;
      }
      at += n;
    }
  }

 private:
  /// The size of a part whose output nobody wants.
  int64_t part_size(const RunContext& c, int i, int64_t total) const {
    if (c.has(1)) return int_at(c.in(1), i);
    if (!sizes_.empty()) return sizes_[i];
    int64_t part = (total + parts_ - 1) / parts_;
    return std::clamp<int64_t>(total - part * i, 0, part);
  }
  int64_t axis_;
  int64_t parts_;
  bool uneven_;
  std::vector<int64_t> sizes_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(split) { r.add({.name = "Split", .since = 1, .make = make_kernel<Split>, .shape_inputs = 2}); }
