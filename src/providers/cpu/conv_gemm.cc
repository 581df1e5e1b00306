#include <algorithm>

#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "ops/nn/columns.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// fp32 convolution in plain layout, any number of spatial dims and groups: the image's windows become the columns of a
/// matrix (im2col), and a matrix product does the rest. Output positions are taken a block at a time, so that the
/// columns stay in the cache. For convolutions that the NCHWc layout does not take.
class ConvGemm final : public Kernel {
 public:
  ConvGemm(const NodeInfo& info, KernelPtr portable)
      : portable_(std::move(portable)), attributes_(info), group_(info.attr("group", 1)) {}

  void shapes(ShapeContext& c) const override {
    portable_->shapes(c);
    const Shape &x = c.in(0), &w = c.in(1);
    const Window window = slide(attributes_, c.node(), x, kernel_dims(w));
    c.workspace(checked_mul(slot_bytes(window, w, c.threads()), c.threads()));
  }

  void run(const RunContext& c) const override {
    const Tensor &x = c.in(0), &w = c.in(1);
    const Window window = slide(attributes_, c.node(), x.shape, kernel_dims(w.shape));
    const int threads = c.pool().threads();
    const int64_t group_out = w.shape[0] / group_, group_in = w.shape[1], in_size = window.in_size(),
                  out_size = window.out_size(), k = group_in * window.kernel_size();
    const bool direct = is_direct(window);
    const int64_t block = block_of(window, k, threads), blocks = (out_size + block - 1) / block;
    const size_t slot_size = slot_bytes(window, w.shape, threads);
    const double cost = static_cast<double>(block * k) * (0.04 * static_cast<double>(group_out) + 0.5);
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t g = 0; g < group_; ++g) {
        const float* image = x.as<float>() + (n * group_ + g) * group_in * in_size;
        float* y = c.out(0).as<float>() + (n * group_ + g) * group_out * out_size;
        parallel_items(c.pool(), blocks, cost, [&](int slot, int64_t item) {
          char* memory = c.workspace_as<char>() + slot_size * static_cast<size_t>(slot);
          const int64_t begin = item * block, count = std::min(block, out_size - begin);
          Gemm product = problem(window, w.shape, count);
          if (!direct) {
            float* columns = reinterpret_cast<float*>(memory);
            memory += columns_bytes(window, k, count);
            gather(c.pool(), window, image, group_in, begin, count, columns);
            product.b = columns;
          } else {
            product.b = image + begin;
            product.ldb = out_size;
          }
          product.a = w.as<float>() + g * group_out * k;
          product.c = y + begin;
          product.ldc = out_size;
          if (c.has(2)) {
            product.epilogue.bias = c.in(2).as<float>() + g * group_out;
            product.epilogue.bias_row_stride = 1;
            product.epilogue.bias_col_stride = 0;
          }
          gemm(product, memory, c.pool());
        });
      }
  }

 private:
  static Shape kernel_dims(const Shape& w) { return Shape(w.dims().subspan(2)); }

  static bool is_direct(const Window& window) {
    for (int d = 0; d < window.rank(); ++d)
      if (window.kernel[d] != 1 || window.stride[d] != 1 || window.pad[d] != 0 || window.in[d] != window.out[d])
        return false;
    return true;
  }

  /// Output positions taken at a time: all, when the product alone makes work for the threads.
  static int64_t block_of(const Window& window, int64_t k, int threads) {
    constexpr int64_t kColumnFloats = 96 * 1024, kLeast = 64;
    const int64_t size = std::max<int64_t>(1, window.out_size());
    if (is_direct(window) || k == 0 || size * k <= 4 * kColumnFloats) return size;
    const int64_t fits = std::max(kLeast, kColumnFloats / k);
    const int64_t rounds = (size + fits * threads - 1) / (fits * threads);  // all threads end together
    return (size + rounds * threads * 16 - 1) / (rounds * threads * 16) * 16;
  }

  static size_t columns_bytes(const Window& window, int64_t k, int64_t count) {
    if (is_direct(window)) return 0;
    return (type_bytes(DataType::float32, checked_mul(k, count)) + 63) / 64 * 64;
  }

  size_t slot_bytes(const Window& window, const Shape& w, int threads) const {
    const int64_t k = checked_mul(w[1], window.kernel_size()), block = block_of(window, k, threads);
    return columns_bytes(window, k, block) + (gemm_workspace(problem(window, w, block), threads) + 63) / 64 * 64;
  }

  Gemm problem(const Window& window, const Shape& w, int64_t count) const {
    Gemm g;
    g.m = w[0] / group_;
    g.n = count;
    g.k = w[1] * window.kernel_size();
    g.lda = g.k;
    g.ldb = g.ldc = g.n;
    return g;
  }

  /// columns[channel, tap][position] = the image under that tap, zero in the padding, for positions from `begin` on.
  static void gather(ThreadPool& pool, const Window& w, const float* image, int64_t channels, int64_t begin,
                     int64_t count, float* columns) {
    const int64_t taps = w.kernel_size(), in_size = w.in_size();
    pool.parallel_for(channels * taps, 0.3 * static_cast<double>(count), [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row)
        gather_row(w, image + row / taps * in_size, row % taps, begin, count, 0.0f, columns + row * count);
    });
  }

  KernelPtr portable_;
  WindowAttributes attributes_;
  int64_t group_;
};

KernelPtr make_conv_gemm(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  if (info.in_type(0) != DataType::float32) {
    reason = cat("type ", info.in_type(0));
    return nullptr;
  }
  auto& w = info.in(1).shape;
  if (w && w->size() > 1 && (*w)[1].known() && (*w)[1].value == 1 && info.attr("group", 1) > 1) {
    reason = "one channel a group";
    return nullptr;
  }
  if (!portable) return nullptr;
  return std::make_unique<ConvGemm>(info, std::move(portable));
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(conv_gemm) { r.add({.name = "Conv", .make = make_conv_gemm}); }
