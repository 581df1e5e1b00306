#include "ops/quant/integer_matrix.h"
#include "ops/quant/quant_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Inputs: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero. Scales and zero points per row of a and per column of
/// b. Small floats are dequantised and multiplied in float.
class QLinearMatMul final : public Kernel {
 public:
  explicit QLinearMatMul(const NodeInfo& info) : real_(is_small_float(info.in_type(0))) {
    for (int i : {0, 3})
      if (info.in_type(i) != DataType::uint8 && info.in_type(i) != DataType::int8 && !real_)
        info.refuse(Code::not_implemented, "input type ", info.in_type(i));
    quant_range(info.out_type(0), range_);
  }
  void shapes(ShapeContext& c) const override {
    MatMulDims d = MatMulDims::of(c.node(), c.in(0), c.in(3));
    if (!fits_lines(c.in(1), d.a_batch.size(), d.m)) c.refuse("a_scale of shape ", c.in(1), " for ", c.in(0));
    if (!fits_lines(c.in(4), d.b_batch.size(), d.n)) c.refuse("b_scale of shape ", c.in(4), " for ", c.in(3));
    if (c.in(6).size() != 1) c.refuse("y_scale of shape ", c.in(6), ", expected a scalar");
    const int64_t sums = d.out.size();
    if (real_)
      c.workspace(type_bytes(DataType::float32, checked_add(checked_add(c.in(0).size(), c.in(3).size()), sums)));
    else
      c.workspace(IntegerPair(c.in(0).size(), c.in(3).size()).bytes() + type_bytes(DataType::int32, sums));
    c.out(0, d.out);
  }
  void run(const RunContext& c) const override {
    const MatMulDims d = MatMulDims::of(c.node(), c.in(0).shape, c.in(3).shape);
    if (real_)
      floats(c, d);
    else
      integers(c, d);
  }

 private:
  void integers(const RunContext& c, const MatMulDims& d) const {
    const Tensor &a = c.in(0), &b = c.in(3);
    const IntegerPair pair(a.size(), b.size());
    int16_t *wide_a = c.workspace_as<int16_t>(), *wide_b = wide_a + pair.first;
    uint32_t* sums = reinterpret_cast<uint32_t*>(wide_b + pair.second);
    subtract_zeros(c.node(), a, &c.in(2), d.m, d.k, true, wide_a);
    subtract_zeros(c.node(), b, &c.in(5), d.k, d.n, false, wide_b);
    each_row_block(c.pool(), d.batches(), d.m, d.n, d.k, [&](int64_t batch, int64_t row, int64_t rows) {
      int64_t ai, bi;
      d.find(batch, ai, bi);
      const int64_t at = (batch * d.m + row) * d.n;
      multiply<int16_t, uint32_t>(rows, d.n, d.k, {wide_a + (ai * d.m + row) * d.k, d.k, 1},
                                  {wide_b + bi * d.k * d.n, d.n, 1}, sums + at, d.n);
      store(c, d, ai, bi, row, rows, at, [&](int64_t i) { return static_cast<float>(static_cast<int32_t>(sums[i])); });
    });
  }

  void floats(const RunContext& c, const MatMulDims& d) const {
    const Tensor &a = c.in(0), &b = c.in(3);
    float *wide_a = c.workspace_as<float>(), *wide_b = wide_a + a.size(), *sums = wide_b + b.size();
    load_floats(a.type, a.data, 0, a.size(), wide_a);
    load_floats(b.type, b.data, 0, b.size(), wide_b);
    each_row_block(c.pool(), d.batches(), d.m, d.n, d.k, [&](int64_t batch, int64_t row, int64_t rows) {
      int64_t ai, bi;
      d.find(batch, ai, bi);
      const int64_t at = (batch * d.m + row) * d.n;
      multiply<float, float>(rows, d.n, d.k, {wide_a + (ai * d.m + row) * d.k, d.k, 1},
                             {wide_b + bi * d.k * d.n, d.n, 1}, sums + at, d.n);
      store(c, d, ai, bi, row, rows, at, [&](int64_t i) { return sums[i]; });
    });
  }

  template <class Fn>
  void store(const RunContext& c, const MatMulDims& d, int64_t ai, int64_t bi, int64_t row, int64_t rows, int64_t at,
             Fn&& sum) const {
    Tensor& y = c.out(0);
    const float y_scale = scalar_scale(c.in(6));
    const int32_t zero = real_ ? 0 : scalar_zero(&c.in(7));
    const int64_t a_count = c.in(1).size(), b_count = c.in(4).size();
    for (int64_t r = 0; r < rows; ++r) {
      const float a_scale = scale_at(c.in(1), line_index(a_count, ai, row + r, d.m));
      for (int64_t j = 0; j < d.n; ++j) {
        const float factor = a_scale * scale_at(c.in(4), line_index(b_count, bi, j, d.n)) / y_scale;
        const int64_t i = at + r * d.n + j;
        uint8_t& to = y.as<uint8_t>()[i];
        to = real_ ? encode_small_float(y.type, sum(i) * factor)
                   : static_cast<uint8_t>(quantize_one(sum(i) * factor, zero, range_));
      }
    }
  }

  static float scale_at(const Tensor& scales, int64_t i) {
    if (scales.type == DataType::float32) return scales.as<float>()[i];
    float value;
    load_floats(scales.type, scales.as<uint16_t>() + i, 0, 1, &value);
    return value;
  }

  bool real_;
  QuantRange range_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(q_linear_mat_mul) { r.add({.name = "QLinearMatMul", .since = 10, .make = make_kernel<QLinearMatMul>}); }
