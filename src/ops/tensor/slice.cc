#include <algorithm>

#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Slice: starts, ends, axes and steps are inputs from opset 10, attributes (without steps) before.
class Slice final : public Kernel {
 public:
  explicit Slice(const NodeInfo& info)
      : from_attributes_(info.opset() < 10),
        starts_(info.ints("starts")),
        ends_(info.ints("ends")),
        axes_(info.ints("axes")) {
    if (!from_attributes_) return;
    if (starts_.size() != ends_.size() || (!axes_.empty() && axes_.size() != starts_.size()))
      info.refuse(Code::invalid_graph, "starts, ends and axes differ in length");
  }
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    for_each_axis(c, c.in(0), [&](int axis, int64_t, int64_t, int64_t count) { out[axis] = count; });
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    if (out.size() == 0) return;
    Shape strides = row_major_strides(in.shape), out_strides = row_major_strides(out.shape);
    int64_t first = 0;
    for_each_axis(c, in.shape, [&](int axis, int64_t start, int64_t step, int64_t) {
      first += start * strides[axis];
      strides[axis] *= step;
    });
    StridedCopy copy(in.type);
    for (int i = 0; i < out.shape.rank(); ++i) copy.dim(out.shape[i], strides[i], out_strides[i]);
    copy.run(c.pool(), in.data, first, out.data, 0);
  }

 private:
  static const Tensor* input(const ShapeContext& c, int i) { return c.value(i); }
  static const Tensor* input(const RunContext& c, int i) { return c.has(i) ? &c.in(i) : nullptr; }

  /// Calls fn(axis, start, step, count) for every sliced axis, clamped as the standard says.
  template <class Context, class Fn>
  void for_each_axis(const Context& c, const Shape& in, Fn&& fn) const {
    int64_t n = static_cast<int64_t>(starts_.size());
    const Tensor *starts = nullptr, *ends = nullptr, *axes = nullptr, *steps = nullptr;
    if (!from_attributes_) {
      starts = input(c, 1), ends = input(c, 2), axes = input(c, 3), steps = input(c, 4);
      if (!starts || !ends) c.refuse("starts and ends must be given");
      n = starts->size();
      for (const Tensor* list : {starts, ends, axes, steps}) {
        if (!list) continue;
        check_index_type(c, *list, "starts, ends, axes and steps");
        if (list->size() != n) c.refuse("starts, ends, axes and steps differ in length");
      }
    }
    Shape seen(in.rank(), 0);
    for (int64_t i = 0; i < n; ++i) {
      int64_t wanted = axes ? int_at(*axes, i) : from_attributes_ && !axes_.empty() ? axes_[i] : i;
      int axis = resolve_axis(c, wanted, in.rank());
      if (seen[axis]++) c.refuse("axis ", axis, " is given twice");
      int64_t dim = in[axis], step = steps ? int_at(*steps, i) : 1;
      int64_t start = starts ? int_at(*starts, i) : starts_[i], end = ends ? int_at(*ends, i) : ends_[i];
      if (step == 0) c.refuse("the step of axis ", axis, " is 0");
      if (start < 0) start = start < -dim ? -1 : start + dim;
      if (end < 0) end = end < -dim ? -1 : end + dim;
      int64_t count;
      if (step > 0) {
        start = std::clamp<int64_t>(start, 0, dim);
        end = std::clamp<int64_t>(end, 0, dim);
        count = end <= start ? 0 : (end - start - 1) / step + 1;
      } else {
        step = std::max(step, -std::numeric_limits<int64_t>::max());
        start = std::clamp<int64_t>(start, -1, dim - 1);
        end = std::clamp<int64_t>(end, -1, dim - 1);
        count = start <= end ? 0 : (start - end - 1) / -step + 1;
      }
      // A single element needs no step; a huge one would overflow the strides.
      fn(axis, std::max<int64_t>(start, 0), count <= 1 ? 1 : step, count);
    }
  }
  bool from_attributes_;
  std::vector<int64_t> starts_, ends_, axes_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(slice) { r.add({.name = "Slice", .since = 1, .make = make_kernel<Slice>, .shape_inputs = 0x1e}); }
