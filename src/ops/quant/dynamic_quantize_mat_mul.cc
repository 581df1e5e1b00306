#include <bit>

#include "ops/quant/byte_table.h"
#include "ops/quant/integer_matrix.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// com.microsoft DynamicQuantizeMatMul: A (float), B, b_scale, b_zero, bias. A is quantised to uint8 over its own range;
/// scale and zero point of B are scalars or per column.
class DynamicQuantizeMatMul final : public Kernel {
 public:
  explicit DynamicQuantizeMatMul(const NodeInfo& info) {
    if (info.in_type(0) != DataType::float32) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    check_byte_type(info, 1);
  }
  void shapes(ShapeContext& c) const override {
    const MatMulDims d = MatMulDims::of(c.node(), c.in(0), c.in(1));
    if (!fits_lines(c.in(2), d.b_batch.size(), d.n)) c.refuse("b_scale of shape ", c.in(2), " for ", c.in(1));
    if (c.has(4) && c.in(4).size() != d.n) c.refuse("bias of shape ", c.in(4), ", expected {", d.n, "}");
    c.workspace(IntegerPair(c.in(0).size(), c.in(1).size()).bytes());
    c.out(0, d.out);
  }
  void run(const RunContext& c) const override {
    const Tensor &a = c.in(0), &b = c.in(1);
    const MatMulDims d = MatMulDims::of(c.node(), a.shape, b.shape);
    int16_t *wide_a = c.workspace_as<int16_t>(), *wide_b = wide_a + IntegerPair(a.size(), b.size()).first;
    const float scale = quantize(a, wide_a);
    subtract_zeros(c.node(), b, c.has(3) ? &c.in(3) : nullptr, d.k, d.n, false, wide_b);
    const float *b_scale = c.data<float>(2), *bias = c.data<float>(4);
    const int64_t scales = c.in(2).size();
    uint32_t* y = c.out_data<uint32_t>(0);
    each_row_block(c.pool(), d.batches(), d.m, d.n, d.k, [&](int64_t batch, int64_t row, int64_t rows) {
      int64_t ai, bi;
      d.find(batch, ai, bi);
      uint32_t* sums = y + (batch * d.m + row) * d.n;
      multiply<int16_t, uint32_t>(rows, d.n, d.k, {wide_a + (ai * d.m + row) * d.k, d.k, 1},
                                  {wide_b + bi * d.k * d.n, d.n, 1}, sums, d.n);
      // The sums become floats in place.
      for (int64_t i = 0; i < rows * d.n; ++i) {
        const float factor = scale * b_scale[line_index(scales, bi, i % d.n, d.n)];
        float value = static_cast<float>(static_cast<int32_t>(sums[i])) * factor + (bias ? bias[i % d.n] : 0.0f);
        sums[i] = std::bit_cast<uint32_t>(value);
      }
    });
  }

 private:
  /// Codes less the zero point; returns the scale.
  static float quantize(const Tensor& a, int16_t* to) {
    const float* x = a.as<float>();
    float low = 0, high = 0;
    for (int64_t i = 0; i < a.size(); ++i) {
      low = std::min(low, x[i]);
      high = std::max(high, x[i]);
    }
    constexpr QuantRange kRange{0, 255};
    const float scale = high == low ? 1.0f : (high - low) / 255.0f;
    const int32_t zero = quantize_one(-low / scale, 0, kRange);
    for (int64_t i = 0; i < a.size(); ++i)
      to[i] = static_cast<int16_t>(quantize_one(x[i] / scale, zero, kRange) - zero);
    return scale;
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(dynamic_quantize_mat_mul) {
  r.add({.name = "DynamicQuantizeMatMul", .domain = "com.microsoft", .make = make_kernel<DynamicQuantizeMatMul>});
}
