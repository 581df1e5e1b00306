#include <algorithm>
#include <cmath>

#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// LRN: x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta.
class Lrn final : public FloatKernel<Lrn> {
 public:
  explicit Lrn(const NodeInfo& info)
      : FloatKernel(info),
        size_(info.attr("size", 0)),
        alpha_(info.attr("alpha", 1e-4f)),
        beta_(info.attr("beta", 0.75f)),
        bias_(info.attr("bias", 1.0f)) {
    if (size_ < 1) info.refuse(Code::invalid_graph, "size is ", size_);
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() < 2) c.refuse("input has shape ", x, "; expected {N, C, spatial dims...}");
    c.workspace(FloatIo::bytes(c, {x}));
    c.out(0, x);
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T* x = io.in<T>(0);
    T* y = io.out<T>(0);
    const Shape& shape = c.in(0).shape;
    const int64_t channels = shape[1], places = shape.size(2, shape.rank());
    const int64_t before = (size_ - 1) / 2, after = size_ / 2;
    const T factor = static_cast<T>(alpha_) / static_cast<T>(size_);
    double cost = static_cast<double>(places) * (static_cast<double>(std::min(size_, channels)) + 20);
    c.pool().parallel_for(shape[0] * channels, cost, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t k = plane % channels;
        const int64_t first = std::max<int64_t>(0, k - before), last = std::min(channels - 1, k + after);
        T* out = y + plane * places;
        std::fill_n(out, places, T(0));
        for (int64_t j = first; j <= last; ++j) {
          const T* in = x + (plane - k + j) * places;
          for (int64_t p = 0; p < places; ++p) out[p] += in[p] * in[p];
        }
        const T* in = x + plane * places;
        for (int64_t p = 0; p < places; ++p)
          out[p] = in[p] * std::pow(static_cast<T>(bias_) + factor * out[p], static_cast<T>(-beta_));
      }
    });
    io.store();
  }

  int64_t size_;
  float alpha_, beta_, bias_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(lrn) { r.add({.name = "LRN", .make = make_kernel<Lrn>}); }
