#include "ops/broadcast.h"
#include "ops/quant/byte_table.h"
#include "ops/quant/integer_matrix.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// com.microsoft QGemm: A, a_scale, a_zero, B, b_scale, b_zero, C (int32), y_scale, y_zero. Scale and zero point of B
/// may be per column. C has the scale alpha * a_scale * b_scale. Without y_scale the result is float.
class QGemm final : public Kernel {
 public:
  explicit QGemm(const NodeInfo& info)
      : alpha_(info.attr("alpha", 1.0f)), trans_a_(info.attr("transA", 0) != 0), trans_b_(info.attr("transB", 0) != 0) {
    check_byte_type(info, 0);
    check_byte_type(info, 3);
  }
  void shapes(ShapeContext& c) const override {
    const Shape &a = c.in(0), &b = c.in(3);
    if (a.rank() != 2 || b.rank() != 2) c.refuse("matrices of shapes ", a, " and ", b, ", expected rank 2");
    const int64_t m = a[trans_a_ ? 1 : 0], k = a[trans_a_ ? 0 : 1], n = b[trans_b_ ? 0 : 1];
    if (b[trans_b_ ? 1 : 0] != k) c.refuse("matrices of shapes ", a, " and ", b, " do not multiply");
    for (int i : {1, 2, 7, 8}) check_scalar(c, i);
    for (int i : {4, 5})
      if (c.has(i) && c.in(i).size() != 1 && c.in(i).size() != n)
        c.refuse("input ", i, " has shape ", c.in(i), ", expected a scalar or {", n, "}");
    Shape out{m, n};
    if (c.has(6) && !broadcasts_to(c.in(6), out)) c.refuse("C of shape ", c.in(6), " does not broadcast to ", out);
    c.workspace(IntegerPair(a.size(), b.size()).bytes() + type_bytes(DataType::int32, out.size()));
    c.out(0, std::move(out));
  }
  void run(const RunContext& c) const override {
    const Tensor &a = c.in(0), &b = c.in(3);
    Tensor& y = c.out(0);
    const int64_t m = y.shape[0], n = y.shape[1], k = a.shape[trans_a_ ? 0 : 1];
    const IntegerPair pair(a.size(), b.size());
    int16_t *wide_a = c.workspace_as<int16_t>(), *wide_b = wide_a + pair.first;
    uint32_t* sums = reinterpret_cast<uint32_t*>(wide_b + pair.second);
    subtract_zeros(c.node(), a, c.has(2) ? &c.in(2) : nullptr, a.shape[0], a.shape[1], true, wide_a);
    subtract_zeros(c.node(), b, c.has(5) ? &c.in(5) : nullptr, b.shape[0], b.shape[1], trans_b_, wide_b);
    Shape none = {};
    const Broadcast<1> addend(y.shape, {c.has(6) ? &c.in(6).shape : &none});
    each_row_block(c.pool(), 1, m, n, k, [&](int64_t, int64_t row, int64_t rows) {
      multiply<int16_t, uint32_t>(rows, n, k, {wide_a + row * (trans_a_ ? 1 : k), trans_a_ ? 1 : k, trans_a_ ? m : 1},
                                  {wide_b, trans_b_ ? 1 : n, trans_b_ ? k : 1}, sums + row * n, n);
      if (c.has(6)) {
        const int step = addend.step(0);
        addend.walk(row * n, (row + rows) * n, [&](int64_t at, const int64_t* in, int64_t count) {
          for (int64_t i = 0; i < count; ++i) sums[at + i] += c.data<uint32_t>(6)[in[0] + i * step];
        });
      }
      store(c, row * n, rows * n, n, sums);
    });
  }

 private:
  void store(const RunContext& c, int64_t begin, int64_t count, int64_t n, const uint32_t* sums) const {
    Tensor& y = c.out(0);
    const float a_scale = alpha_ * scalar_scale(c.in(1));
    const bool per_column = c.in(4).size() > 1;
    const float* b_scale = c.data<float>(4);
    auto real = [&](int64_t i) {
      return static_cast<float>(static_cast<int32_t>(sums[i])) * a_scale * b_scale[per_column ? i % n : 0];
    };
    if (!c.has(7)) {
      for (int64_t i = begin; i < begin + count; ++i) y.as<float>()[i] = real(i);
      return;
    }
    const ByteScale to = byte_scale(c, y.type, 7, 8);
    for (int64_t i = begin; i < begin + count; ++i) y.as<uint8_t>()[i] = to.code(real(i));
  }

  float alpha_;
  bool trans_a_, trans_b_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(q_gemm) { r.add({.name = "QGemm", .domain = "com.microsoft", .make = make_kernel<QGemm>}); }
