#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/tensor/scatter_util.h"

namespace epona {
namespace {

/// ScatterElements (and its first name, Scatter): out = data, then out[i][index[i][j]] (reduction)= updates[i][j].
class ScatterElements final : public Kernel {
 public:
  explicit ScatterElements(const NodeInfo& info)
      : axis_(info.attr("axis", 0)), combine_(combine_fn(scatter_reduction(info), info.in_type(0))) {}
  void shapes(ShapeContext& c) const override {
    const Shape &data = c.in(0), &indices = c.in(1), &updates = c.in(2);
    int axis = resolve_axis(c, axis_, data.rank());
    bool fits = indices.rank() == data.rank() && indices == updates;
    for (int i = 0; fits && i < data.rank(); ++i) fits = i == axis || indices[i] <= data[i];
    if (!fits)
      c.refuse("indices of shape ", indices, " and updates of shape ", updates, " do not fit data of shape ", data,
               " along axis ", axis);
    c.out(0, data);
  }
  void run(const RunContext& c) const override {
    const Tensor &data = c.in(0), &indices = c.in(1), &updates = c.in(2);
    Tensor& out = c.out(0);
    copy_elements(data.type, data.size(), data.data, 0, out.data, 0);
    if (indices.size() == 0) return;
    check_index_type(c, indices, "indices");
    int rank = data.shape.rank(), axis = resolve_axis(c, axis_, rank);
    Shape strides = row_major_strides(data.shape);
    int64_t row = indices.shape[rank - 1], dim = data.shape[axis], step = axis == rank - 1 ? 0 : 1;
    // One thread: two updates may meet at one element, and the order decides.
    for (int64_t r = 0, flat = 0; flat < indices.size(); ++r) {
      int64_t base = 0, rest = r;
      for (int i = rank - 2; i >= 0; rest /= indices.shape[i], --i)
        if (i != axis) base += rest % indices.shape[i] * strides[i];
      for (int64_t j = 0; j < row; ++j, ++flat) {
        int64_t at = int_at(indices, flat);
        if (at < -dim || at >= dim)
          c.refuse("index ", at, " is out of range [", -dim, ",", dim - 1, "] for axis ", axis, " of data of shape ",
                   data.shape);
        combine_(data.type, 1, updates.data, flat, out.data,
                 base + j * step + (at < 0 ? at + dim : at) * strides[axis]);
      }
    }
  }

 private:
  int64_t axis_;
  CombineFn combine_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(scatter_elements) {
  r.add({.name = "ScatterElements", .since = 11, .make = make_kernel<ScatterElements>});
  r.add({.name = "Scatter", .since = 9, .make = make_kernel<ScatterElements>});
}
