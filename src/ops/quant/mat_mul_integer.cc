#include <bit>

#include "ops/quant/integer_matrix.h"
#include "ops/quant/quant_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

bool is_byte(DataType type) { return type == DataType::uint8 || type == DataType::int8; }

/// (A - a_zero) * (B - b_zero) in 32 bits; zero points per row of A and per column of B. The com.microsoft operator
/// MatMulIntegerToFloat scales the sums and adds a bias.
class MatMulInteger final : public Kernel {
 public:
  explicit MatMulInteger(const NodeInfo& info) : to_float_(info.node().op == "MatMulIntegerToFloat") {
    if (!is_byte(info.in_type(0)) || !is_byte(info.in_type(1)))
      info.refuse(Code::not_implemented, "input types ", info.in_type(0), " and ", info.in_type(1));
    a_zero_ = to_float_ ? 4 : 2;
    if (to_float_ && info.out_type(0) != DataType::float32)
      info.refuse(Code::not_implemented, "output type ", info.out_type(0));
  }
  void shapes(ShapeContext& c) const override {
    MatMulDims d = MatMulDims::of(c.node(), c.in(0), c.in(1));
    if (c.has(a_zero_) && !fits_lines(c.in(a_zero_), d.a_batch.size(), d.m))
      c.refuse("a_zero_point of shape ", c.in(a_zero_), " for ", c.in(0));
    if (c.has(a_zero_ + 1) && !fits_lines(c.in(a_zero_ + 1), d.b_batch.size(), d.n))
      c.refuse("b_zero_point of shape ", c.in(a_zero_ + 1), " for ", c.in(1));
    if (to_float_) {
      if (!fits_lines(c.in(2), d.a_batch.size(), d.m)) c.refuse("a_scale of shape ", c.in(2), " for ", c.in(0));
      if (!fits_lines(c.in(3), d.b_batch.size(), d.n)) c.refuse("b_scale of shape ", c.in(3), " for ", c.in(1));
      if (c.has(6) && c.in(6).size() != d.n) c.refuse("bias of shape ", c.in(6), ", expected {", d.n, "}");
    }
    c.workspace(IntegerPair(c.in(0).size(), c.in(1).size()).bytes());
    c.out(0, d.out);
  }
  void run(const RunContext& c) const override {
    const Tensor &a = c.in(0), &b = c.in(1);
    const MatMulDims d = MatMulDims::of(c.node(), a.shape, b.shape);
    int16_t *wide_a = c.workspace_as<int16_t>(), *wide_b = wide_a + IntegerPair(a.size(), b.size()).first;
    subtract_zeros(c.node(), a, c.has(a_zero_) ? &c.in(a_zero_) : nullptr, d.m, d.k, true, wide_a);
    subtract_zeros(c.node(), b, c.has(a_zero_ + 1) ? &c.in(a_zero_ + 1) : nullptr, d.k, d.n, false, wide_b);
    uint32_t* y = c.out_data<uint32_t>(0);
    each_row_block(c.pool(), d.batches(), d.m, d.n, d.k, [&](int64_t batch, int64_t row, int64_t rows) {
      int64_t ai, bi;
      d.find(batch, ai, bi);
      uint32_t* to = y + (batch * d.m + row) * d.n;
      multiply<int16_t, uint32_t>(rows, d.n, d.k, {wide_a + (ai * d.m + row) * d.k, d.k, 1},
                                  {wide_b + bi * d.k * d.n, d.n, 1}, to, d.n);
      if (to_float_) scale(c, d, ai, bi, row, rows, to);
    });
  }

 private:
  /// The sums become floats in place.
  void scale(const RunContext& c, const MatMulDims& d, int64_t ai, int64_t bi, int64_t row, int64_t rows,
             uint32_t* sums) const {
    const Tensor &a_scale = c.in(2), &b_scale = c.in(3);
    const float* bias = c.data<float>(6);
    const int64_t a_count = a_scale.size(), b_count = b_scale.size();
    for (int64_t r = 0; r < rows; ++r) {
      const float factor = a_scale.as<float>()[line_index(a_count, ai, row + r, d.m)];
      for (int64_t j = 0; j < d.n; ++j) {
        uint32_t& cell = sums[r * d.n + j];
        float value = static_cast<float>(static_cast<int32_t>(cell)) * factor *
                      b_scale.as<float>()[line_index(b_count, bi, j, d.n)];
        if (bias) value += bias[j];
        cell = std::bit_cast<uint32_t>(value);
      }
    }
  }

  bool to_float_;
  int a_zero_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(mat_mul_integer) {
  r.add({.name = "MatMulInteger", .since = 10, .make = make_kernel<MatMulInteger>});
  r.add({.name = "MatMulIntegerToFloat", .domain = "com.microsoft", .make = make_kernel<MatMulInteger>});
}
