#include <cmath>

#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// MeanVarianceNormalization: (x - mean) / (standard deviation + 1e-9) over the given axes.
class MeanVarianceNormalization final : public FloatKernel<MeanVarianceNormalization> {
 public:
  explicit MeanVarianceNormalization(const NodeInfo& info) : FloatKernel(info), axes_(info.ints("axes", {0, 2, 3})) {}
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    for (int64_t a : axes_)
      if (a < -x.rank() || a >= x.rank()) c.refuse("axis ", a, " is out of range for input of shape ", x);
    c.workspace(FloatIo::bytes(c, {x}));
    c.out(0, x);
  }

 private:
  friend FloatKernel;
  /// Walks the elements of some dims, counted from 0: fn(offset).
  struct Dims {
    Shape sizes, steps;
    template <class Fn>
    void walk(int64_t offset, Fn&& fn) const {
      const int last = sizes.rank() - 1;
      const int64_t count = sizes.size();
      Shape at(sizes.rank(), 0);
      for (int64_t i = 0; i < count; ++i) {
        fn(offset);
        for (int d = last; d >= 0; --d) {
          offset += steps[d];
          if (++at[d] < sizes[d]) break;
          offset -= steps[d] * sizes[d];
          at[d] = 0;
        }
      }
    }
  };

  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T* x = io.in<T>(0);
    T* y = io.out<T>(0);
    const Shape& shape = c.in(0).shape;
    Dims reduced, kept;
    for (int d = 0; d < shape.rank(); ++d) {
      bool in = false;
      for (int64_t a : axes_) in = in || a == d || a + shape.rank() == d;
      Dims& dims = in ? reduced : kept;
      dims.sizes.push_back(shape[d]);
      dims.steps.push_back(shape.size(d + 1, shape.rank()));
    }
    const int64_t n = reduced.sizes.size(), groups = kept.sizes.size();
    if (n == 0 || groups == 0) return;
    c.pool().parallel_for(groups, 6.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        int64_t start = 0, rest = g;
        for (int d = kept.sizes.rank() - 1; d >= 0; --d) {
          start += rest % kept.sizes[d] * kept.steps[d];
          rest /= kept.sizes[d];
        }
        double sum = 0, squares = 0;
        reduced.walk(start, [&](int64_t at) { sum += static_cast<double>(x[at]); });
        const double mean = sum / static_cast<double>(n);
        reduced.walk(start, [&](int64_t at) {
          const double v = static_cast<double>(x[at]) - mean;
          squares += v * v;
        });
        const double deviation = std::sqrt(squares / static_cast<double>(n)) + 1e-9;
        reduced.walk(start,
                     [&](int64_t at) { y[at] = static_cast<T>((static_cast<double>(x[at]) - mean) / deviation); });
      }
    });
    io.store();
  }

  std::vector<int64_t> axes_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(mean_variance_normalization) {
  r.add({.name = "MeanVarianceNormalization", .since = 9, .make = make_kernel<MeanVarianceNormalization>});
}
