#include "kernels/strided_copy.h"
#include "ops/registry.h"
#include "ops/tensor/scatter_util.h"

namespace epona {
namespace {

/// ScatterND: out = data, then the slices named by index tuples (reduction)= the slices of updates.
class ScatterND final : public Kernel {
 public:
  explicit ScatterND(const NodeInfo& info) : combine_(combine_fn(scatter_reduction(info), info.in_type(0))) {}
  void shapes(ShapeContext& c) const override {
    const Shape &data = c.in(0), &indices = c.in(1), &updates = c.in(2);
    int last = indices.rank() - 1;
    if (last < 0 || indices[last] > data.rank())
      c.refuse("indices of shape ", indices, " do not fit data of shape ", data);
    int tuple = static_cast<int>(indices[last]);
    bool fits = updates.rank() == last + data.rank() - tuple;
    for (int i = 0; fits && i < updates.rank(); ++i)
      fits = updates[i] == (i < last ? indices[i] : data[i - last + tuple]);
    if (!fits)
      c.refuse("updates of shape ", updates, " do not fit indices of shape ", indices, " and data of shape ", data);
    c.out(0, data);
  }
  void run(const RunContext& c) const override {
    const Tensor &data = c.in(0), &indices = c.in(1), &updates = c.in(2);
    Tensor& out = c.out(0);
    copy_elements(data.type, data.size(), data.data, 0, out.data, 0);
    if (updates.size() == 0) return;
    int tuple = static_cast<int>(indices.shape.back());
    Shape strides = row_major_strides(data.shape);
    int64_t rows = indices.shape.size(0, indices.shape.rank() - 1), inner = data.shape.size(tuple, data.shape.rank());
    const int64_t* index = indices.as<int64_t>();
    // One thread: two updates may meet at one slice, and the order decides.
    for (int64_t r = 0; r < rows; ++r) {
      int64_t to = 0;
      for (int i = 0; i < tuple; ++i) {
        int64_t at = index[r * tuple + i], dim = data.shape[i];
        if (at < -dim || at >= dim)
          c.refuse("index ", at, " is out of range [", -dim, ",", dim - 1, "] for dim ", i, " of data of shape ",
                   data.shape);
        to += (at < 0 ? at + dim : at) * strides[i];
      }
      combine_(data.type, inner, updates.data, r * inner, out.data, to);
    }
  }

 private:
  CombineFn combine_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(scatter_nd) { r.add({.name = "ScatterND", .since = 11, .make = make_kernel<ScatterND>}); }
