#include <cmath>

#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// LpNormalization: x divided by its L1 or L2 norm along an axis; a norm of 0 gives 0.
class LpNormalization final : public FloatKernel<LpNormalization> {
 public:
  explicit LpNormalization(const NodeInfo& info)
      : FloatKernel(info), axis_(info.attr("axis", -1)), p_(info.attr("p", 2)) {
    if (p_ != 1 && p_ != 2) info.refuse(Code::invalid_graph, "p is ", p_, "; expected 1 or 2");
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (axis_ < -x.rank() || axis_ >= x.rank()) c.refuse("axis ", axis_, " is out of range for input of shape ", x);
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
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + shape.rank() : axis_);
    const int64_t n = shape[axis], inner = shape.size(axis + 1, shape.rank()), outer = shape.size(0, axis);
    c.pool().parallel_for(outer * inner, 2.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = i / inner * n * inner + i % inner;
        T norm = 0;
        for (int64_t k = 0; k < n; ++k) {
          const T v = x[start + k * inner];
          norm += p_ == 1 ? std::abs(v) : v * v;
        }
        if (p_ == 2) norm = std::sqrt(norm);
        for (int64_t k = 0; k < n; ++k) y[start + k * inner] = norm == 0 ? T(0) : x[start + k * inner] / norm;
      }
    });
    io.store();
  }

  int64_t axis_, p_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(lp_normalization) { r.add({.name = "LpNormalization", .make = make_kernel<LpNormalization>}); }
