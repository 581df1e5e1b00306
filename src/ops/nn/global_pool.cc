#include <cmath>
#include <limits>

#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// GlobalAveragePool, GlobalMaxPool, GlobalLpPool: one result for every plane of {N, C, spatial dims}.
class GlobalPool final : public FloatKernel<GlobalPool> {
 public:
  enum Kind { average, max, lp };

  explicit GlobalPool(const NodeInfo& info) : FloatKernel(info) {
    const std::string& op = info.node().op;
    kind_ = op == "GlobalAveragePool" ? average : op == "GlobalMaxPool" ? max : lp;
    if (kind_ == lp) p_ = info.opset() == 1 ? info.attr("p", 2.0f) : static_cast<float>(info.attr("p", 2));
  }

  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    if (y.rank() < 2) c.refuse("input has shape ", y, "; expected {N, C, spatial dims...}");
    for (int d = 2; d < y.rank(); ++d) y[d] = 1;
    c.workspace(FloatIo::bytes(c, {y}));
    c.out(0, std::move(y));
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T* x = io.in<T>(0);
    T* y = io.out<T>(0);
    const Shape& xs = c.in(0).shape;
    const int64_t planes = xs[0] * xs[1], size = xs.size(2, xs.rank());
    c.pool().parallel_for(planes, 1.0 * static_cast<double>(size), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) y[plane] = pool(x + plane * size, size);
    });
    io.store();
  }

  template <class T>
  T pool(const T* x, int64_t n) const {
    if (kind_ == max) {
      T best = -std::numeric_limits<T>::infinity();
      for (int64_t i = 0; i < n; ++i) best = !(x[i] <= best) && best == best ? x[i] : best;
      return best;
    }
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      double v = static_cast<double>(x[i]);
      sum += kind_ == average ? v : p_ == 1 ? std::abs(v) : p_ == 2 ? v * v : std::pow(std::abs(v), double{p_});
    }
    if (kind_ == average) return static_cast<T>(sum / static_cast<double>(n));
    return static_cast<T>(p_ == 1 ? sum : p_ == 2 ? std::sqrt(sum) : std::pow(sum, 1.0 / double{p_}));
  }

  Kind kind_;
  float p_ = 2;
};

}  // namespace
}  // namespace epona

EPONA_OPS(global_pool) {
  for (const char* name : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"})
    r.add({.name = name, .make = make_kernel<GlobalPool>});
}
