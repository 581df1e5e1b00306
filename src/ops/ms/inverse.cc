#include <cmath>
#include <utility>

#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Inverse of every square matrix of a stack, by Gauss-Jordan elimination with row exchange, in double. A singular
/// matrix is an error.
class Inverse final : public Kernel {
 public:
  explicit Inverse(const NodeInfo& info) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() < 2 || x.back() != x[x.rank() - 2]) c.refuse("input has shape ", x, "; expected square matrices");
    // One matrix beside its inverse, in double, for each of the stack, and the input as double.
    c.workspace(static_cast<size_t>(checked_mul(x.size(), 2)) * sizeof(double));
    c.out(0, x);
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    const int64_t n = x.shape.back(), size = n * n;
    if (size == 0 || x.size() == 0) return;
    double* work = c.workspace_as<double>();
    double* result = work + x.size();
    convert_floats(x.type, x.data, DataType::float64, work, x.size(), c.pool());
    c.pool().parallel_for(x.size() / size, 2.0 * static_cast<double>(size * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (!invert(work + i * size, result + i * size, n)) c.refuse("matrix ", i, " is singular");
    });
    convert_floats(DataType::float64, result, c.out(0).type, c.out(0).data, x.size(), c.pool());
  }

 private:
  static bool invert(double* a, double* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) out[i * n + j] = i == j;
    for (int64_t k = 0; k < n; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n; ++i)
        if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
      if (a[pivot * n + k] == 0) return false;
      for (int64_t j = 0; pivot != k && j < n; ++j) {
        std::swap(a[k * n + j], a[pivot * n + j]);
        std::swap(out[k * n + j], out[pivot * n + j]);
      }
      const double scale = 1 / a[k * n + k];
      for (int64_t j = 0; j < n; ++j) a[k * n + j] *= scale, out[k * n + j] *= scale;
      for (int64_t i = 0; i < n; ++i) {
        const double factor = a[i * n + k];
        if (i == k || factor == 0) continue;
        for (int64_t j = 0; j < n; ++j) {
          a[i * n + j] -= factor * a[k * n + j];
          out[i * n + j] -= factor * out[k * n + j];
        }
      }
    }
    return true;
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(inverse) { r.add({.name = "Inverse", .domain = "com.microsoft", .make = make_kernel<Inverse>}); }
