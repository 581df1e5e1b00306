#include <algorithm>
#include <cmath>

#include "ops/dispatch.h"
#include "ops/ml/ml_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Normalizer: every row divided by its largest element, the sum of magnitudes, or the Euclidean norm. A divisor of 0
/// leaves the row as it is.
class Normalizer final : public Kernel {
 public:
  explicit Normalizer(const NodeInfo& info) {
    if (!is_ml_number(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    const std::string norm = info.attr("norm", "MAX");
    if (norm == "MAX")
      norm_ = max;
    else if (norm == "L1")
      norm_ = l1;
    else if (norm == "L2")
      norm_ = l2;
    else
      info.refuse(Code::invalid_graph, "norm is \"", norm, "\"; expected MAX, L1 or L2");
  }
  void shapes(ShapeContext& c) const override {
    RowsOf(c, c.in(0));
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override {
    const RowsOf size(c, c.in(0).shape);
    float* y = c.out_data<float>(0);
    dispatch(c.in(0).type, Types<float, double, int64_t, int32_t>{}, [&]<class T>() {
      const T* x = c.data<T>(0);
      c.pool().parallel_for(size.rows, 3.0 * static_cast<double>(size.columns), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) row(x + i * size.columns, y + i * size.columns, size.columns);
      });
    });
  }

 private:
  enum { max, l1, l2 } norm_;

  template <class T>
  void row(const T* x, float* y, int64_t n) const {
    double divisor = norm_ == max && n > 0 ? static_cast<double>(x[0]) : 0;
    for (int64_t i = 0; i < n; ++i) {
      const double v = static_cast<double>(x[i]);
      divisor = norm_ == max ? std::max(divisor, v) : divisor + (norm_ == l1 ? std::abs(v) : v * v);
    }
    if (norm_ == l2) divisor = std::sqrt(divisor);
    if (divisor == 0) divisor = 1;
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(static_cast<double>(x[i]) / divisor);
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(normalizer) { r.add({.name = "Normalizer", .domain = "ai.onnx.ml", .make = make_kernel<Normalizer>}); }
