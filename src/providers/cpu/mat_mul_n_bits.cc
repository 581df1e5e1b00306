#include "base/weight_memory.h"
#include "kernels/gemm_nbits.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// com.microsoft's MatMulNBits with constant weights. Accuracy level 4 rounds A to 8 bits in each block, as onnxruntime
/// does; every other level sums in float32.
class MatMulNBits final : public Kernel {
 public:
  MatMulNBits(const NodeInfo& info, KernelPtr portable, const NBitsWeights& weights)
      : portable_(std::move(portable)), weights_(weights) {
    const bool rounded = info.attr("accuracy_level", 0) == 4 && nbits_int8_supported(weights);
    mode_ = rounded ? NBitsMode::int8 : NBitsMode::f32;
    packed_ = allocate_weights(packed_nbits_bytes(weights_, mode_));
    pack_nbits(weights_, mode_, packed_.get());
    // Only the sizes are needed from here on.
    weights_.quants = weights_.zeros = nullptr;
    weights_.scales = weights_.float_zeros = nullptr;
  }

  void shapes(ShapeContext& c) const override {
    portable_->shapes(c);
    c.workspace(gemm_nbits_workspace(describe(c.in(0)), c.threads()));
  }

  void run(const RunContext& c) const override {
    NBitsGemm g = describe(c.in(0).shape);
    g.a = c.data<float>(0);
    g.b = packed_.get();
    g.c = c.out_data<float>(0);
    g.bias = c.data<float>(5);
    gemm_nbits(g, c.workspace(), c.pool());
  }

  bool reads_constant(int input) const override { return input == 0 || input == 5; }

 private:
  NBitsGemm describe(const Shape& a) const {
    NBitsGemm g;
    g.k = weights_.k;
    g.n = weights_.n;
    g.m = g.k > 0 ? a.size() / g.k : 0;
    g.bits = weights_.bits;
    g.block = weights_.block;
    g.mode = mode_;
    g.lda = g.k;
    g.ldc = g.n;
    return g;
  }

  KernelPtr portable_;
  NBitsWeights weights_;
  NBitsMode mode_;
  std::shared_ptr<void> packed_;
};

KernelPtr make(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  const Tensor *b = info.constant(1), *scales = info.constant(2), *zeros = info.constant(3);
  const auto no = [&](const char* why) {
    reason = why;
    return nullptr;
  };
  if (!portable) return no("no portable kernel");
  if (info.in_type(0) != DataType::float32) return no("A is not float32");
  if (!b || !scales || (info.has(3) && !zeros)) return no("weights are not constant");
  if (info.has(4)) return no("g_idx");
  NBitsWeights w;
  w.k = info.attr("K", 0);
  w.n = info.attr("N", 0);
  w.bits = static_cast<int>(info.attr("bits", 4));
  w.block = info.attr("block_size", 32);
  if (w.bits != 2 && w.bits != 4 && w.bits != 8) return no("bits other than 2, 4 and 8");
  if (w.block < 16 || w.block > 256 || (w.block & (w.block - 1)) != 0 || w.k <= 0 || w.n <= 0) return no("block_size");
  const int64_t blocks = (w.k + w.block - 1) / w.block, zero_row = (blocks * w.bits + 7) / 8;
  if (b->type != DataType::uint8 || b->size() != w.n * blocks * w.block * w.bits / 8) return no("layout of B");
  if (scales->type != DataType::float32 || scales->size() != w.n * blocks) return no("layout of the scales");
  w.quants = b->as<uint8_t>();
  w.scales = scales->as<float>();
  if (zeros && zeros->type == DataType::uint8 && zeros->size() == w.n * zero_row) {
    w.zeros = zeros->as<uint8_t>();
  } else if (zeros && zeros->type == DataType::float32 && zeros->size() == w.n * blocks) {
    w.float_zeros = zeros->as<float>();
  } else if (zeros) {
    return no("layout of the zero points");
  }
  // In a model file nothing is aligned.
  Tensor aligned_scales, aligned_zeros;
  if (reinterpret_cast<uintptr_t>(w.scales) % alignof(float)) {
    aligned_scales = scales->clone();
    w.scales = aligned_scales.as<float>();
  }
  if (w.float_zeros && reinterpret_cast<uintptr_t>(w.float_zeros) % alignof(float)) {
    aligned_zeros = zeros->clone();
    w.float_zeros = aligned_zeros.as<float>();
  }
  return std::make_unique<MatMulNBits>(info, std::move(portable), w);
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(mat_mul_n_bits) { r.add({.name = "MatMulNBits", .domain = "com.microsoft", .make = make}); }
