#include "ops/float_io.h"
#include "ops/multiply.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// One operand of FusedMatMul: transBatch moves dim 0 behind the batch dims, trans swaps the last two. Vectors stay.
struct Operand {
  Shape shape;             ///< as the product sees it
  int64_t step, row, col;  ///< elements between matrices, rows and columns

  Operand(const Shape& s, bool trans, bool trans_batch) : shape(s) {
    const int rank = s.rank();
    if (rank < 2) {
      step = row = 0;
      col = 1;
      return;
    }
    step = s[rank - 2] * s[rank - 1];
    row = s[rank - 1];
    col = 1;
    if (trans_batch && rank > 2) {
      for (int d = 0; d + 2 < rank; ++d) shape[d] = s[d + 1];
      shape[rank - 2] = s[0];
      step = s[rank - 1];
      row = s.size(1, rank);
    }
    if (trans) {
      std::swap(shape[rank - 2], shape[rank - 1]);
      std::swap(row, col);
    }
  }
};

/// FusedMatMul and TransposeMatMul: alpha times numpy.matmul of the operands, transposed on the way.
class FusedMatMul final : public FloatKernel<FusedMatMul> {
 public:
  explicit FusedMatMul(const NodeInfo& info)
      : FloatKernel(info),
        alpha_(info.attr("alpha", 1.0f)),
        trans_a_(info.attr("transA", 0) != 0),
        trans_b_(info.attr("transB", 0) != 0),
        batch_a_(info.attr("transBatchA", 0) != 0),
        batch_b_(info.attr("transBatchB", 0) != 0) {}

  void shapes(ShapeContext& c) const override {
    const MatMulDims dims = MatMulDims::of(c.node(), left(c.in(0)).shape, right(c.in(1)).shape);
    c.workspace(FloatIo::bytes(c, {dims.out}));
    c.out(0, dims.out);
  }

 private:
  friend FloatKernel;
  Operand left(const Shape& s) const { return {s, trans_a_, batch_a_}; }
  Operand right(const Shape& s) const { return {s, trans_b_, batch_b_}; }

  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *a = io.in<T>(0), *b = io.in<T>(1);
    T* y = io.out<T>(0);
    Operand x = left(c.in(0).shape), w = right(c.in(1).shape);
    const MatMulDims d = MatMulDims::of(c.node(), x.shape, w.shape);
    if (w.shape.rank() == 1) w.row = 1, w.col = 0;  // a column
    const T alpha = static_cast<T>(alpha_);
    each_row_block(c.pool(), d.batches(), d.m, d.n, d.k, [&](int64_t batch, int64_t row, int64_t rows) {
      int64_t ai, bi;
      d.find(batch, ai, bi);
      T* to = y + (batch * d.m + row) * d.n;
      multiply<T, T>(rows, d.n, d.k, {a + ai * x.step + row * x.row, x.row, x.col}, {b + bi * w.step, w.row, w.col}, to,
                     d.n);
      if (alpha_ != 1)
        for (int64_t i = 0; i < rows * d.n; ++i) to[i] *= alpha;
    });
    io.store();
  }

  float alpha_;
  bool trans_a_, trans_b_, batch_a_, batch_b_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(fused_mat_mul) {
  r.add({.name = "FusedMatMul", .domain = "com.microsoft", .make = make_kernel<FusedMatMul>});
  r.add({.name = "TransposeMatMul", .domain = "com.microsoft", .make = make_kernel<FusedMatMul>});
}
