#include <algorithm>
#include <cstring>

#include "kernels/conv.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// The second half of a transposed convolution without overlap: pixel (h, w) of tap (i, j) goes to (h * kh + i,
/// w * kw + j). SpreadTapsNchwc(x): [N, taps * blocks, H, W, 16] -> [N, blocks, H * kh, W * kw, 16].
/// SpreadTapsToPlanes(x, channels): channel tap * channels + c of the blocks -> [N, channels, H * kh, W * kw].
template <bool kPlanes>
class SpreadTaps final : public Kernel {
 public:
  explicit SpreadTaps(const NodeInfo& info) : kernel_(info.ints("kernel_shape")), channels_(info.attr("channels", 0)) {}

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    const int64_t kh = kernel_[0], kw = kernel_[1];
    Shape y{x[0], kPlanes ? channels_ : x[1] / (kh * kw), checked_mul(x[2], kh), checked_mul(x[3], kw)};
    if (!kPlanes) y.push_back(kChannelBlock);
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    const Shape& y = c.out(0).shape;
    const int64_t planes = y[1], rows = y[2], width = x[3], plane = x[2] * width * kChannelBlock;
    const double ns = (kPlanes ? 0.5 : 4.0) * static_cast<double>(y[3]);
    c.pool().parallel_for(x[0] * planes * rows, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i % rows, p = i / rows % planes, n = i / rows / planes;
        const float* image = c.data<float>(0) + n * x[1] * plane + row / kernel_[0] * width * kChannelBlock;
        for (int64_t j = 0; j < kernel_[1]; ++j) {
          const int64_t tap = row % kernel_[0] * kernel_[1] + j;
          if (kPlanes) {
            const int64_t channel = tap * channels_ + p;
            const float* from = image + channel / kChannelBlock * plane + channel % kChannelBlock;
            float* to = c.out_data<float>(0) + i * y[3] + j;
            for (int64_t w = 0; w < width; ++w) to[w * kernel_[1]] = from[w * kChannelBlock];
          } else {
            const float* from = image + (tap * planes + p) * plane;
            float* to = c.out_data<float>(0) + (i * y[3] + j) * kChannelBlock;
            for (int64_t w = 0; w < width; ++w) {
              std::memcpy(to + w * kernel_[1] * kChannelBlock, from + w * kChannelBlock, kChannelBlock * sizeof(float));
            }
          }
        }
      }
    });
  }

 private:
  std::vector<int64_t> kernel_;
  int64_t channels_;
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(spread_taps) {
  r.add_internal({.name = "SpreadTapsNchwc", .make = make_kernel<SpreadTaps<false>>});
  r.add_internal({.name = "SpreadTapsToPlanes", .make = make_kernel<SpreadTaps<true>>});
}
