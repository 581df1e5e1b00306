#include <algorithm>
#include <cmath>

#include "ops/convert.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Determinants of a stack of square matrices, by elimination with row exchange, in double.
class Det final : public Kernel {
 public:
  explicit Det(const NodeInfo& info) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "input type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    const int rank = x.rank();
    if (rank < 2 || x[rank - 1] != x[rank - 2]) c.refuse("input of shape ", x, ", expected square matrices");
    c.workspace(type_bytes(DataType::float64, checked_mul(x[rank - 1], x[rank - 1])));
    c.out(0, Shape(x.dims().first(static_cast<size_t>(rank - 2))));
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const int64_t n = x.shape.back(), count = y.size();
    const size_t bytes = type_bits(x.type) / 8;
    double* a = c.workspace_as<double>();
    for (int64_t i = 0; i < count; ++i) {
      convert_elements(x.type, static_cast<const char*>(x.data) + static_cast<size_t>(i * n * n) * bytes,
                       DataType::float64, a, 0, n * n);
      const double value = eliminate(a, n);
      convert_elements(DataType::float64, &value, y.type, static_cast<char*>(y.data) + static_cast<size_t>(i) * bytes,
                       0, 1);
    }
  }

 private:
  static double eliminate(double* a, int64_t n) {
    double product = 1;
    for (int64_t k = 0; k < n; ++k) {
      int64_t pivot = k;
      for (int64_t r = k + 1; r < n; ++r)
        if (std::abs(a[r * n + k]) > std::abs(a[pivot * n + k])) pivot = r;
      if (a[pivot * n + k] == 0) return 0;
      if (pivot != k) {
        std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
        product = -product;
      }
      product *= a[k * n + k];
      for (int64_t r = k + 1; r < n; ++r) {
        const double factor = a[r * n + k] / a[k * n + k];
        for (int64_t j = k; j < n; ++j) a[r * n + j] -= factor * a[k * n + j];
      }
    }
    return product;
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(det) { r.add({.name = "Det", .since = 11, .make = make_kernel<Det>}); }
