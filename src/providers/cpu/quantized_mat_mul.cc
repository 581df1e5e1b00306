#include <algorithm>
#include <vector>

#include "base/weight_memory.h"
#include "kernels/gemm_int8.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// QMatMul(a, b, scale, bias?, b_zero?): the product of 8-bit integers a [..., K] with a constant matrix b [K, N], or
/// [N, K] with trans_b, zero points one or one per column, to 8-bit integers: y = clamp(round((sum + bias) *
/// scale[column]) + y_zero, low, high). Attributes x_zero, y_zero, low, high, trans_b.
class QMatMul final : public Kernel {
 public:
  explicit QMatMul(const NodeInfo& info) {
    const Tensor *b = info.constant(1), *scale = info.constant(2), *bias = info.constant(3), *zero = info.constant(4);
    if (!b || !scale || (info.has(3) && !bias) || (info.has(4) && !zero))
      info.refuse(Code::invalid_graph, "weights, scales, bias and zero points should be constants");
    const bool trans_b = info.attr("trans_b", 0) != 0;
    g_.k = b->shape[trans_b ? 1 : 0], g_.n = b->shape[trans_b ? 0 : 1];
    g_.lda = g_.k, g_.ldc = g_.n;
    g_.a_signed = info.in_type(0) == DataType::int8;
    g_.b_signed = b->type == DataType::int8;
    g_.output = info.out_type(0) == DataType::int8 ? Int8Output::s8 : Int8Output::u8;
    g_.scale_stride = 1;
    g_.c_zero = static_cast<int32_t>(info.attr("y_zero", 0));
    g_.low = static_cast<int32_t>(info.attr("low", 0));
    g_.high = static_cast<int32_t>(info.attr("high", 255));
    a_zero_ = static_cast<uint8_t>(info.attr("x_zero", 0));
    scale_.assign(scale->as<float>(), scale->as<float>() + scale->size());
    if (bias) bias_.assign(bias->as<int32_t>(), bias->as<int32_t>() + bias->size());
    if (zero) {
      b_zero_.assign(zero->as<uint8_t>(), zero->as<uint8_t>() + zero->size());
      g_.b_zero_stride = zero->size() > 1 ? 1 : 0;
    }
    packed_ = allocate_weights(packed_b_int8_bytes(g_.k, g_.n));
    pack_b_int8(g_.k, g_.n, b->data, trans_b ? g_.k : g_.n, trans_b, g_.b_signed, packed_.get());
  }

  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    if (y.rank() < 1 || y.back() != g_.k) c.refuse("input has shape ", y, "; expected a last dim of ", g_.k);
    const int64_t m = y.size() / std::max<int64_t>(g_.k, 1);
    y[y.rank() - 1] = g_.n;
    c.workspace(gemm_int8_workspace(m, g_.n, g_.k, true));
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    Int8Gemm g = g_;
    g.m = c.out(0).size() / std::max<int64_t>(g.n, 1);
    g.a = c.in(0).data;
    g.b = packed_.get();
    g.a_zero = &a_zero_;
    g.b_zero = b_zero_.empty() ? nullptr : b_zero_.data();
    g.scale = scale_.data();
    g.bias_s32 = bias_.empty() ? nullptr : bias_.data();
    g.c = c.out(0).data;
    gemm_int8(g, c.workspace(), c.pool());
  }

  bool reads_constant(int input) const override { return input == 0; }

 private:
  Int8Gemm g_;
  uint8_t a_zero_;
  std::vector<float> scale_;
  std::vector<int32_t> bias_;
  std::vector<uint8_t> b_zero_;
  std::shared_ptr<void> packed_;
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(quantized_mat_mul) { r.add_internal({.name = "QMatMul", .make = make_kernel<QMatMul>}); }
