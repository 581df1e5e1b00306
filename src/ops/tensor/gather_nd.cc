#include <cstring>

#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// GatherND: slices of the input named by index tuples (the last dim of indices), batch_dims leading dims in step.
class GatherND final : public Kernel {
 public:
  explicit GatherND(const NodeInfo& info) : batch_(info.attr("batch_dims", 0)) {}
  void shapes(ShapeContext& c) const override {
    const Shape &in = c.in(0), &indices = c.in(1);
    int last = indices.rank() - 1, batch = static_cast<int>(batch_);
    if (batch_ < 0 || batch_ > last || batch_ >= in.rank())
      c.refuse("batch_dims ", batch_, " does not fit input of shape ", in, " and indices of shape ", indices);
    for (int i = 0; i < batch; ++i)
      if (in[i] != indices[i])
        c.refuse("input of shape ", in, " and indices of shape ", indices, " differ in batch dim ", i);
    if (indices[last] < 1 || indices[last] > in.rank() - batch)
      c.refuse("the last dim of indices of shape ", indices, " must be in [1,", in.rank() - batch, "]");
    Shape out;
    for (int i = 0; i < last; ++i) out.push_back(indices[i]);
    for (int i = batch + static_cast<int>(indices[last]); i < in.rank(); ++i) out.push_back(in[i]);
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor &in = c.in(0), &indices = c.in(1);
    Tensor& out = c.out(0);
    if (out.size() == 0) return;
    int rank = in.shape.rank(), batch = static_cast<int>(batch_);
    int tuple = static_cast<int>(indices.shape.back());
    Shape strides = row_major_strides(in.shape);
    int64_t rows = indices.shape.size(0, indices.shape.rank() - 1), rows_per_batch = rows / in.shape.size(0, batch);
    int64_t inner = in.shape.size(batch + tuple, rank), batch_stride = in.shape.size(batch, rank);
    check_index_type(c, indices, "indices");  // int32 only in com.microsoft's
    auto run_rows = [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t from = r / rows_per_batch * batch_stride;
        for (int i = 0; i < tuple; ++i) {
          int64_t at = int_at(indices, r * tuple + i), dim = in.shape[batch + i];
          if (at < -dim || at >= dim)
            c.refuse("index ", at, " is out of range [", -dim, ",", dim - 1, "] for dim ", batch + i,
                     " of input of shape ", in.shape);
          from += (at < 0 ? at + dim : at) * strides[batch + i];
        }
        copy_elements(in.type, inner, in.data, from, out.data, r * inner);
      }
    };
    if (is_subbyte(in.type))
      run_rows(0, rows);  // neighbours may share a byte
    else
      c.pool().parallel_for(rows, 10 + static_cast<double>(inner) * 0.4, run_rows);
  }

 private:
  int64_t batch_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(gather_nd) {
  r.add({.name = "GatherND", .since = 11, .make = make_kernel<GatherND>});
  r.add({.name = "GatherND", .domain = "com.microsoft", .make = make_kernel<GatherND>});
}
