#include "ops/broadcast.h"
#include "ops/float_io.h"
#include "ops/ms/fused_activation.h"
#include "ops/multiply.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// FusedGemm: activation(alpha * op(A) * op(B) + beta * C).
class FusedGemm final : public Kernel {
 public:
  explicit FusedGemm(const NodeInfo& info)
      : alpha_(info.attr("alpha", 1.0f)),
        beta_(info.attr("beta", 1.0f)),
        trans_a_(info.attr("transA", 0) != 0),
        trans_b_(info.attr("transB", 0) != 0) {
    const DataType type = info.in_type(0);
    if (!is_float(type) || type == DataType::float64) info.refuse(Code::not_implemented, "type ", type);
    std::vector<float> parameters;
    for (const char* key : {"activation_alpha", "activation_beta"})
      if (info.has_attr(key)) parameters.push_back(info.attr(key, 0.0f));
    activation_ = fused_activation(info, parameters);
  }

  void shapes(ShapeContext& c) const override {
    const Shape &a = c.in(0), &b = c.in(1);
    if (a.rank() != 2 || b.rank() != 2 || a[trans_a_ ? 0 : 1] != b[trans_b_ ? 1 : 0])
      c.refuse("matrices of shapes ", a, " and ", b, " do not multiply");
    const Shape y{a[trans_a_ ? 1 : 0], b[trans_b_ ? 0 : 1]};
    if (c.has(2) && !broadcasts_to(c.in(2), y)) c.refuse("C of shape ", c.in(2), " does not broadcast to ", y);
    c.workspace(FloatIo::bytes(c, {y}));
    c.out(0, y);
  }

  void run(const RunContext& c) const override {
    FloatIo io(c, 0);
    const float *a = io.in<float>(0), *b = io.in<float>(1), *addend = io.in<float>(2);
    float* y = io.out<float>(0);
    const Shape &out = c.out(0).shape, &as = c.in(0).shape;
    const int64_t m = out[0], n = out[1], k = as[trans_a_ ? 0 : 1];
    const MatrixView<float> left{a, trans_a_ ? 1 : k, trans_a_ ? m : 1}, right{b, trans_b_ ? 1 : n, trans_b_ ? k : 1};
    const Shape scalar = {};
    const Broadcast<1> c_of(out, {addend ? &c.in(2).shape : &scalar});
    each_row_block(c.pool(), 1, m, n, k, [&](int64_t, int64_t row, int64_t rows) {
      float* to = y + row * n;
      multiply<float, float>(rows, n, k, {left.data + row * left.row, left.row, left.col}, right, to, n);
      if (alpha_ != 1)
        for (int64_t i = 0; i < rows * n; ++i) to[i] *= alpha_;
      if (addend && beta_ != 0) {
        const int step = c_of.step(0);
        c_of.walk(row * n, (row + rows) * n, [&](int64_t at, const int64_t* in, int64_t count) {
          for (int64_t i = 0; i < count; ++i) y[at + i] += beta_ * addend[in[0] + i * step];
        });
      }
      if (activation_) activate(activation_, to, to, rows * n);
    });
    io.store();
  }

 private:
  float alpha_, beta_;
  bool trans_a_, trans_b_;
  Activation activation_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(fused_gemm) { r.add({.name = "FusedGemm", .domain = "com.microsoft", .make = make_kernel<FusedGemm>}); }
