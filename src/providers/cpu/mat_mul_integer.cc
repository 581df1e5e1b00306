#include "base/weight_memory.h"
#include "kernels/gemm_int8.h"
#include "providers/cpu/cpu_registry.h"
#include "providers/cpu/shared_weights.h"

namespace epona::cpu {
namespace {

bool is_byte(DataType type) { return type == DataType::uint8 || type == DataType::int8; }
size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// MatMulInteger and com.microsoft's MatMulIntegerToFloat with one matrix B for all of A, packed when it is constant.
class MatMulInteger final : public Kernel {
 public:
  MatMulInteger(const NodeInfo& info, KernelPtr portable)
      : portable_(std::move(portable)),
        to_float_(info.node().op == "MatMulIntegerToFloat"),
        a_zero_(to_float_ ? 4 : 2),
        a_signed_(info.in_type(0) == DataType::int8),
        b_signed_(info.in_type(1) == DataType::int8) {
    const Tensor* b = info.constant(1);
    if (!b) return;
    const int64_t k = b->shape[b->shape.rank() - 2], n = b->shape.back();
    packed_ = share_packed(*b, {k, n, b_signed_}, [&] {
      auto memory = allocate_weights(packed_b_int8_bytes(k, n));
      pack_b_int8(k, n, b->data, n, false, b_signed_, memory.get());
      return memory;
    });
  }

  void shapes(ShapeContext& c) const override {
    portable_->shapes(c);
    const Shape &a = c.in(0), &b = c.in(1);
    const int64_t k = b[b.rank() - 2], n = b.back(), rows = k > 0 ? a.size() / k : 0;
    c.workspace(round_up(gemm_int8_workspace(rows, n, k, packed_ != nullptr)));
  }

  void run(const RunContext& c) const override {
    const Tensor &a = c.in(0), &b = c.in(1), &y = c.out(0);
    Int8Gemm g;
    g.k = b.shape[b.shape.rank() - 2];
    g.n = b.shape.back();
    g.m = g.n > 0 ? y.size() / g.n : 0;
    g.lda = g.k;
    g.a_signed = a_signed_;
    g.b = packed_ ? packed_.get() : b.data;
    g.b_packed = packed_ != nullptr;
    g.ldb = g.n;
    g.b_signed = b_signed_;
    g.ldc = g.n;
    if (c.has(a_zero_ + 1)) {
      g.b_zero = c.in(a_zero_ + 1).data;
      g.b_zero_stride = c.in(a_zero_ + 1).size() == 1 ? 0 : 1;
    }
    if (to_float_) {
      g.output = Int8Output::f32;
      g.a_scale = *c.data<float>(2);
      g.scale = c.data<float>(3);
      g.scale_stride = c.in(3).size() == 1 ? 0 : 1;
      g.bias = c.data<float>(6);
    }
    // Zero points of one matrix serve every matrix of a batch; shapes() has compared their number with the rows.
    const int64_t zeros = c.has(a_zero_) ? c.in(a_zero_).size() : 1;
    const int64_t parts = zeros > 1 && zeros < g.m ? g.m / zeros : 1;
    g.m /= parts;
    g.a_zero = c.has(a_zero_) ? c.in(a_zero_).data : nullptr;
    g.a_zero_stride = zeros == 1 ? 0 : 1;
    for (int64_t i = 0; i < parts; ++i) {
      g.a = static_cast<const uint8_t*>(a.data) + i * g.m * g.k;
      g.c = static_cast<int32_t*>(y.data) + i * g.m * g.n;
      gemm_int8(g, c.workspace(), c.pool());
    }
  }

  bool reads_constant(int input) const override { return !(input == 1 && packed_); }

 private:
  KernelPtr portable_;
  bool to_float_;
  int a_zero_;
  bool a_signed_, b_signed_;
  std::shared_ptr<void> packed_;
};

bool one_matrix(const NodeInfo& info) {
  if (const Tensor* b = info.constant(1)) {
    const int rank = b->shape.rank();
    return rank >= 2 && b->shape.size(0, rank - 2) == 1 && b->size() > 0;
  }
  return info.in(1).shape && info.in(1).shape->size() == 2;
}

bool one_element(const Type& type) {
  if (!type.shape) return false;
  for (const Dim& dim : *type.shape)
    if (dim.value != 1) return false;
  return true;
}

KernelPtr make(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  if (!portable || !is_byte(info.in_type(0)) || !is_byte(info.in_type(1))) {
    reason = "element types";
    return nullptr;
  }
  if (!one_matrix(info)) {
    reason = "B is not one matrix";
    return nullptr;
  }
  if (info.node().op == "MatMulIntegerToFloat" && !one_element(info.in(2))) {
    reason = "a_scale has more than one element";
    return nullptr;
  }
  return std::make_unique<MatMulInteger>(info, std::move(portable));
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(mat_mul_integer) {
  r.add({.name = "MatMulInteger", .make = make});
  r.add({.name = "MatMulIntegerToFloat", .domain = "com.microsoft", .make = make});
}
