#include "kernels/attention.h"

#include <algorithm>

#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// epona's Attention, made by the pass fuse_attention: softmax(scale Q K^T + bias) V on tensors of rank 4 that are
/// {batch, heads, rows, columns} or, as the attribute says, {batch, rows, heads, columns}. Dims of one are repeated.
class FusedAttention final : public Kernel {
 public:
  explicit FusedAttention(const NodeInfo& info)
      : scale_(info.attr("scale", 1.0f)),
        rows_first_{info.attr("q_rows_first", 0) != 0, info.attr("k_rows_first", 0) != 0,
                    info.attr("v_rows_first", 0) != 0},
        out_rows_first_(info.attr("out_rows_first", 0) != 0) {
    for (int i = 0; i < info.inputs(); ++i)
      if (info.has(i) && info.in_type(i) != DataType::float32)
        info.refuse(Code::not_implemented, "type ", info.in_type(i));
  }

  void shapes(ShapeContext& c) const override {
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i); });
    c.workspace(attention_workspace(call(s), c.threads()));
    c.out(0, out_rows_first_ ? Shape{s.batch, s.rows, s.heads, s.v_dim} : Shape{s.batch, s.heads, s.rows, s.v_dim});
  }

  void run(const RunContext& c) const override {
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i).shape; });
    AttentionCall a = call(s);
    a.q = input(c, 0, s.in[0]);
    a.k = input(c, 1, s.in[1]);
    a.v = input(c, 2, s.in[2]);
    if (c.has(3)) a.bias = bias(c);
    a.out = c.out_data<float>(0);
    a.out_batch = s.heads * s.rows * s.v_dim;
    a.out_head = out_rows_first_ ? s.v_dim : s.rows * s.v_dim;
    a.out_seq = out_rows_first_ ? s.heads * s.v_dim : s.v_dim;
    attention(a, c.workspace(), c.pool());
  }

 private:
  struct Dims4 {
    int64_t batch, heads, rows, columns;
  };
  struct Sizes {
    Dims4 in[3];
    int64_t batch = 1, heads = 1, rows = 1, v_dim = 0;
  };

  template <class Context, class ShapeOf>
  Sizes sizes(const Context& c, ShapeOf&& shape) const {
    Sizes s;
    const auto fit = [&](int64_t& dim, int64_t other, int i) {
      if (other != 1 && dim != 1 && dim != other)
        c.refuse("input ", i, " of shape ", shape(i), " does not fit the others");
      dim = dim == 1 ? other : dim;
    };
    for (int i = 0; i < 3; ++i) {
      const Shape& x = shape(i);
      if (x.rank() != 4) c.refuse("input ", i, " has shape ", x, "; expected rank 4");
      s.in[i] = rows_first_[i] ? Dims4{x[0], x[2], x[1], x[3]} : Dims4{x[0], x[1], x[2], x[3]};
      fit(s.batch, s.in[i].batch, i);
      fit(s.heads, s.in[i].heads, i);
    }
    s.rows = s.in[0].rows;
    s.v_dim = s.in[2].columns;
    const int64_t keys = s.in[1].rows;
    if (s.in[0].columns != s.in[1].columns || keys != s.in[2].rows)
      c.refuse("Q ", shape(0), ", K ", shape(1), " and V ", shape(2), " do not fit");
    if (!c.has(3)) return s;
    const Shape& b = shape(3);
    const int rank = b.rank();
    int64_t* dims[] = {&s.rows, &s.heads, &s.batch};
    if (rank > 4 || (rank > 0 && b.back() != 1 && b.back() != keys))
      c.refuse("input 3 of shape ", b, " does not fit ", keys, " keys");
    for (int d = 2; d <= rank; ++d) fit(*dims[d - 2], b[rank - d], 3);
    return s;
  }

  AttentionCall call(const Sizes& s) const {
    AttentionCall a;
    a.batch = s.batch;
    a.heads = s.heads;
    // Heads that share keys and values lie side by side only when all do.
    a.kv_heads = s.in[1].heads == 1 && s.in[2].heads == 1 ? 1 : s.heads;
    a.q_len = s.rows;
    a.kv_len = s.in[1].rows;
    a.dim = s.in[0].columns;
    a.v_dim = s.v_dim;
    a.scale = scale_;
    a.zero_when_masked = false;
    return a;
  }

  AttentionInput input(const RunContext& c, int i, const Dims4& x) const {
    AttentionInput view;
    view.data = c.data<float>(i);
    view.batch = x.batch == 1 ? 0 : x.heads * x.rows * x.columns;
    view.head = x.heads == 1 ? 0 : rows_first_[i] ? x.columns : x.rows * x.columns;
    view.seq = x.rows == 1 ? 0 : rows_first_[i] ? x.heads * x.columns : x.columns;
    return view;
  }

  static AttentionBias bias(const RunContext& c) {
    const Shape& shape = c.in(3).shape;
    const int rank = std::min(shape.rank(), 4);  // sizes() refuses more
    AttentionBias view;
    view.data = c.data<float>(3);
    view.col = rank == 0 || shape.back() == 1 ? 0 : 1;
    int64_t* strides[] = {&view.row, &view.head, &view.batch};
    int64_t step = rank == 0 ? 1 : shape.back();
    for (int d = 2; d <= rank; ++d) {
      const int64_t dim = shape[rank - d];
      *strides[d - 2] = dim == 1 ? 0 : step;
      step *= dim;
    }
    return view;
  }

  float scale_;
  bool rows_first_[3], out_rows_first_;
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(attention) { r.add_internal({.name = "Attention", .make = make_kernel<FusedAttention>}); }
