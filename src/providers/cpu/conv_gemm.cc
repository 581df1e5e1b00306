#include <algorithm>

#include "kernels/gemm.h"
#include "ops/nn/window.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// fp32 convolution in plain layout, any number of spatial dims and groups: the image's windows become the columns of a
/// matrix (im2col), and a matrix product does the rest. For convolutions that the NCHWc layout does not take.
class ConvGemm final : public Kernel {
 public:
  ConvGemm(const NodeInfo& info, KernelPtr portable)
      : portable_(std::move(portable)), attributes_(info), group_(info.attr("group", 1)) {}

  void shapes(ShapeContext& c) const override {
    portable_->shapes(c);
    const Shape &x = c.in(0), &w = c.in(1);
    const Window window = slide(attributes_, c.node(), x, kernel_dims(w));
    Gemm g = problem(window, w);
    c.workspace(columns_bytes_of(window, w) + gemm_workspace(g, c.threads()));
  }

  void run(const RunContext& c) const override {
    const Tensor &x = c.in(0), &w = c.in(1);
    const Window window = slide(attributes_, c.node(), x.shape, kernel_dims(w.shape));
    const int64_t group_out = w.shape[0] / group_, group_in = w.shape[1], in_size = window.in_size(),
                  out_size = window.out_size(), k = group_in * window.kernel_size();
    const bool direct = is_direct(window);
    float* columns = c.workspace_as<float>();
    void* scratch = static_cast<char*>(c.workspace()) + columns_bytes_of(window, w.shape);
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t g = 0; g < group_; ++g) {
        const float* image = x.as<float>() + (n * group_ + g) * group_in * in_size;
        if (!direct) gather(c.pool(), window, image, group_in, columns);
        Gemm product = problem(window, w.shape);
        product.a = w.as<float>() + g * group_out * k;
        product.b = direct ? image : columns;
        product.c = c.out(0).as<float>() + (n * group_ + g) * group_out * out_size;
        if (c.has(2)) {
          product.epilogue.bias = c.in(2).as<float>() + g * group_out;
          product.epilogue.bias_row_stride = 1;
          product.epilogue.bias_col_stride = 0;
        }
        gemm(product, scratch, c.pool());
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

  size_t columns_bytes_of(const Window& window, const Shape& w) const {
    if (is_direct(window)) return 0;
    int64_t floats = checked_mul(checked_mul(w[1], window.kernel_size()), window.out_size());
    return (type_bytes(DataType::float32, floats) + 63) / 64 * 64;
  }

  Gemm problem(const Window& window, const Shape& w) const {
    Gemm g;
    g.m = w[0] / group_;
    g.n = window.out_size();
    g.k = w[1] * window.kernel_size();
    g.lda = g.k;
    g.ldb = g.ldc = g.n;
    return g;
  }

  /// columns[channel, tap][position] = the image under that tap, zero in the padding.
  static void gather(ThreadPool& pool, const Window& w, const float* image, int64_t channels, float* columns) {
    const int64_t taps = w.kernel_size(), in_size = w.in_size(), out_size = w.out_size();
    pool.parallel_for(channels * taps, 0.3 * static_cast<double>(out_size), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        gather_row(w, image + row / taps * in_size, row % taps, columns + row * out_size);
    });
  }

  static void gather_row(const Window& w, const float* plane, int64_t tap, float* to) {
    const int rank = w.rank(), last = rank - 1;
    Shape taps(rank, 0), at(rank, 0);
    for (int d = last; d >= 0; --d) {
      taps[d] = tap % w.kernel[d];
      tap /= w.kernel[d];
    }
    int64_t first = 0, stop = 0;
    w.valid(last, taps[last], first, stop);
    first = std::min(first, w.out[last]);
    stop = std::clamp(stop, first, w.out[last]);
    const int64_t rows = w.out.size(0, last), width = w.out[last], stride = w.stride[last];
    for (int64_t r = 0; r < rows; ++r, to += width) {
      int64_t line = 0;
      bool inside = true;
      for (int d = 0; d < last; ++d) {
        const int64_t i = at[d] * w.stride[d] + taps[d] * w.dilation[d] - w.pad[d];
        inside = inside && i >= 0 && i < w.in[d];
        line = line * w.in[d] + i;
      }
      if (!inside) {
        std::fill_n(to, width, 0.0f);
      } else {
        const float* from = plane + line * w.in[last] + taps[last] * w.dilation[last] - w.pad[last];
        std::fill_n(to, first, 0.0f);
        if (stride == 1)
          std::copy(from + first, from + stop, to + first);
        else
          for (int64_t i = first; i < stop; ++i) to[i] = from[i * stride];
        std::fill(to + stop, to + width, 0.0f);
      }
      for (int d = last - 1; d >= 0 && ++at[d] == w.out[d]; --d) at[d] = 0;
    }
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
