#include <cmath>

#include "ops/nn/rows.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// CDist: distances between all pairs of rows of two matrices.
class CDist final : public Kernel {
 public:
  explicit CDist(const NodeInfo& info) {
    if (info.in_type(0) != DataType::float32 && info.in_type(0) != DataType::float64)
      info.refuse(Code::not_implemented, "type ", info.in_type(0));
    const std::string metric = info.attr("metric", "sqeuclidean");
    if (metric == "euclidean")
      metric_ = euclidean;
    else if (metric == "sqeuclidean")
      metric_ = squared;
    else if (metric == "cityblock")
      metric_ = cityblock;
    else if (metric == "chebyshev")
      metric_ = chebyshev;
    else if (metric == "cosine")
      metric_ = cosine;
    else
      info.refuse(Code::not_implemented, "metric \"", metric, "\"");
  }
  void shapes(ShapeContext& c) const override {
    const Shape &a = c.in(0), &b = c.in(1);
    if (a.rank() != 2 || b.rank() != 2 || a[1] != b[1]) c.refuse("inputs have shapes ", a, " and ", b);
    c.out(0, {a[0], b[0]});
  }
  void run(const RunContext& c) const override {
    if (c.in(0).type == DataType::float64)
      compute<double>(c);
    else
      compute<float>(c);
  }

 private:
  enum { euclidean, squared, cityblock, chebyshev, cosine } metric_;

  template <class T>
  void compute(const RunContext& c) const {
    const T *a = c.data<T>(0), *b = c.data<T>(1);
    T* y = c.out_data<T>(0);
    const int64_t rows = c.in(0).shape[0], others = c.in(1).shape[0], n = c.in(0).shape[1];
    c.pool().parallel_for(rows, 0.6 * static_cast<double>(others * n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < others; ++j) y[i * others + j] = distance(a + i * n, b + j * n, n);
    });
  }

  template <class T>
  T distance(const T* a, const T* b, int64_t n) const {
    T most = 0;
    switch (metric_) {
      case euclidean:
      case squared: {
        const T sum = row_reduce<T>(n, [&](int64_t i) { return (a[i] - b[i]) * (a[i] - b[i]); });
        return metric_ == squared ? sum : std::sqrt(sum);
      }
      case cityblock:
        return row_reduce<T>(n, [&](int64_t i) { return std::abs(a[i] - b[i]); });
      case chebyshev:
        for (int64_t i = 0; i < n; ++i) most = std::max(most, std::abs(a[i] - b[i]));
        return most;
      case cosine:
        return T(1) - row_dot(a, b, n) / std::sqrt(row_dot(a, a, n) * row_dot(b, b, n));
    }
    return most;
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(c_dist) { r.add({.name = "CDist", .domain = "com.microsoft", .make = make_kernel<CDist>}); }
