#include "ops/dispatch.h"
#include "ops/ml/ml_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// FeatureVectorizer: the columns of all inputs side by side, as floats. inputdimensions cuts an input or fills it with
/// zeros.
class FeatureVectorizer final : public Kernel {
 public:
  explicit FeatureVectorizer(const NodeInfo& info) : dims_(info.ints("inputdimensions")) {
    if (!is_ml_number(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    if (!dims_.empty() && static_cast<int>(dims_.size()) != info.inputs())
      info.refuse(Code::invalid_graph, "inputdimensions has ", dims_.size(), " entries for ", info.inputs(), " inputs");
    for (int64_t d : dims_)
      if (d < 0) info.refuse(Code::invalid_graph, "inputdimensions holds ", d);
  }
  void shapes(ShapeContext& c) const override {
    int64_t rows = -1, total = 0;
    for (int i = 0; i < c.inputs(); ++i) {
      const RowsOf size(c, c.in(i));
      if (rows >= 0 && size.rows != rows) c.refuse("input ", i, " has ", size.rows, " rows; expected ", rows);
      rows = size.rows;
      total = checked_add(total, width(i, size.columns));
    }
    c.out(0, {rows, total});
  }
  void run(const RunContext& c) const override {
    float* y = c.out_data<float>(0);
    const int64_t total = c.out(0).shape[1];
    int64_t at = 0;
    for (int i = 0; i < c.inputs(); ++i) {
      const RowsOf size(c, c.in(i).shape);
      const int64_t n = width(i, size.columns), copied = std::min(n, size.columns);
      dispatch(c.in(i).type, Types<float, double, int64_t, int32_t>{}, [&]<class T>() {
        const T* x = c.data<T>(i);
        for (int64_t r = 0; r < size.rows; ++r)
          for (int64_t k = 0; k < n; ++k)
            y[r * total + at + k] = k < copied ? static_cast<float>(x[r * size.columns + k]) : 0.0f;
      });
      at += n;
    }
  }

 private:
  int64_t width(int i, int64_t columns) const { return dims_.empty() ? columns : dims_[i]; }
  std::vector<int64_t> dims_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(feature_vectorizer) {
  r.add({.name = "FeatureVectorizer", .domain = "ai.onnx.ml", .make = make_kernel<FeatureVectorizer>});
}
