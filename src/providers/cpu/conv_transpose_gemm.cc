#include <algorithm>

#include "base/unaligned.h"
#include "base/weight_memory.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "ops/nn/conv_transpose.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// fp32 transposed convolution: a matrix product gives what each input position adds to every tap of every channel, and
/// those rows are added up where they belong. Output channels are taken a few at a time, so that the rows stay in the
/// cache.
class ConvTransposeGemm final : public Kernel {
 public:
  ConvTransposeGemm(const NodeInfo& info, KernelPtr portable) : portable_(std::move(portable)), window_(info) {
    const Tensor* w = info.constant(1);
    if (!w || w->shape.rank() < 3 || w->size() == 0 || w->shape[0] % window_.group() != 0) return;
    transposed_ = allocate_weights(static_cast<size_t>(w->size()) * 4);
    transpose(*w, static_cast<float*>(transposed_.get()));
  }

  void shapes(ShapeContext& c) const override {
    portable_->shapes(c);
    const Layout at(window_.geometry(c.node(), c.in(0), c.in(1)), window_.group(), c.in(0), c.in(1));
    const int64_t threads = c.threads(), rows = checked_mul(checked_mul(at.step, at.taps), at.x_size);
    c.workspace(packed_bytes(at) + round_up(type_bytes(DataType::float32, checked_mul(rows, threads))) +
                (transposed_ ? 0 : type_bytes(DataType::float32, c.in(1).size())));
  }

  void run(const RunContext& c) const override {
    const Tensor &x = c.in(0), &w = c.in(1);
    Tensor& y = c.out(0);
    const Window window = window_.geometry(c.node(), x.shape, w.shape);
    const Layout at(window, window_.group(), x.shape, w.shape);
    const int64_t rows_size = at.step * at.taps * at.x_size, y_size = window.in_size();
    char* const memory = c.workspace_as<char>();
    float* const packed = reinterpret_cast<float*>(memory);
    float* const rows = reinterpret_cast<float*>(memory + packed_bytes(at));
    const float* weights = static_cast<const float*>(transposed_.get());
    if (!weights) {
      float* to = reinterpret_cast<float*>(memory + packed_bytes(at) +
                                           round_up(static_cast<size_t>(rows_size * c.pool().threads()) * 4));
      transpose(w, to);
      weights = to;
    }
    const float* bias = c.data<float>(2);
    const double cost = static_cast<double>(rows_size) * (0.04 * static_cast<double>(at.depth) + 0.5);
    for (int64_t n = 0; n < x.shape[0]; ++n)
      for (int64_t g = 0; g < window_.group(); ++g) {
        pack_b(at.depth, at.x_size, x.as<float>() + (n * window_.group() + g) * at.depth * at.x_size, at.x_size, false,
               packed, &c.pool());
        const int64_t items = (at.channels + at.step - 1) / at.step;
        parallel_items(c.pool(), items, cost, [&](int slot, int64_t item) {
          const int64_t first = item * at.step, count = std::min(at.step, at.channels - first);
          float* const part = rows + slot * rows_size;
          Gemm product;
          product.m = count * at.taps, product.n = product.ldb = product.ldc = at.x_size;
          product.k = product.lda = at.depth;
          product.a = weights + (g * at.channels + first) * at.taps * at.depth;
          product.b = packed, product.b_packed = true;
          product.c = part;
          gemm(product, nullptr, c.pool());
          for (int64_t i = 0; i < count; ++i) {
            const int64_t channel = g * at.channels + first + i;
            float* out = y.as<float>() + (n * window_.group() * at.channels + channel) * y_size;
            std::fill_n(out, y_size, bias ? bias[channel] : 0.0f);
            add_up(window, part + i * at.taps * at.x_size, out);
          }
        });
      }
  }

  bool reads_constant(int input) const override { return !(input == 1 && transposed_); }

 private:
  /// Sizes of one group.
  struct Layout {
    int64_t depth, channels, taps, x_size, step;
    Layout(const Window& window, int64_t group, const Shape& x, const Shape& w)
        : depth(x[1] / group), channels(w[1]), taps(window.kernel_size()), x_size(window.out_size()) {
      constexpr int64_t kRowFloats = 64 * 1024;
      step = std::clamp<int64_t>(kRowFloats / std::max<int64_t>(1, taps * x_size), 1, std::max<int64_t>(1, channels));
    }
  };

  static size_t packed_bytes(const Layout& at) { return round_up(packed_b_floats(at.depth, at.x_size) * 4); }

  /// {group, input channel, channel, tap} to {group, channel, tap, input channel}.
  void transpose(const Tensor& w, float* to) const {
    const int64_t depth = w.shape[0] / window_.group(), row = w.size() / w.shape[0];
    for (int64_t g = 0; g < window_.group(); ++g) {
      const float* from = w.as<float>() + g * depth * row;
      for (int64_t d0 = 0; d0 < depth; d0 += 16)
        for (int64_t i = 0; i < row; ++i)
          for (int64_t d = d0; d < std::min(depth, d0 + 16); ++d)
            to[(g * row + i) * depth + d] = load_unaligned(from + d * row + i);
    }
  }

  /// Adds the rows of one channel, one for each tap, to its image.
  static void add_up(const Window& window, const float* rows, float* out) {
    const int last = window.rank() - 1;
    const int64_t stride = window.stride[last], x_w = window.out[last], y_w = window.in[last],
                  kernel_w = window.kernel[last], x_size = window.out_size();
    for_each_row(window, [&](int64_t i, int64_t o, int64_t k) {
      for (int64_t kw = 0; kw < kernel_w; ++kw) {
        int64_t first, until;
        window.valid(last, kw, first, until);
        const float* from = rows + (k * kernel_w + kw) * x_size + i * x_w;
        float* to = out + o * y_w + kw * window.dilation[last] - window.pad[last];
        for (int64_t j = first; j < until; ++j) to[j * stride] += from[j];
      }
    });
  }

  KernelPtr portable_;
  TransposedWindow window_;
  std::shared_ptr<void> transposed_;
};

KernelPtr make(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  if (info.in_type(0) != DataType::float32 || !portable) {
    reason = cat("type ", info.in_type(0));
    return nullptr;
  }
  const auto& w = info.in(1).shape;
  constexpr int64_t kFewChannels = 4;  // the portable kernel is as good below
  if (w && !w->empty() && (*w)[0].known() && (*w)[0].value < kFewChannels * info.attr("group", 1)) {
    reason = "few channels a group";
    return nullptr;
  }
  return std::make_unique<ConvTransposeGemm>(info, std::move(portable));
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(conv_transpose_gemm) { r.add({.name = "ConvTranspose", .make = make}); }
