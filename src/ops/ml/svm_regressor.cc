#include "ops/ml/svm.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// SVMRegressor: rho + sum of coefficient * kernel(x, support vector), or rho + coefficients * x without vectors.
/// one_class: the sign of that.
class SvmRegressor final : public Kernel {
 public:
  explicit SvmRegressor(const NodeInfo& info)
      : kernel_(info),
        coefficients_(info.floats("coefficients")),
        vectors_(info.floats("support_vectors")),
        supports_(info.attr("n_supports", 0)),
        one_class_(info.attr("one_class", 0) != 0),
        transform_(post_transform_of(info)) {
    if (!is_ml_number(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    const auto rho = info.floats("rho");
    rho_ = rho.empty() ? 0.0f : rho[0];
    if (supports_ < 0) info.refuse(Code::invalid_graph, "n_supports is ", supports_);
    if (supports_ > 0) {
      const int64_t size = static_cast<int64_t>(vectors_.size());
      if (size % supports_ != 0 || static_cast<int64_t>(coefficients_.size()) != supports_)
        info.refuse(Code::invalid_graph, "support_vectors (", size, ") and coefficients (", coefficients_.size(),
                    ") do not fit n_supports ", supports_);
      features_ = size / supports_;
    } else {
      features_ = static_cast<int64_t>(coefficients_.size());
    }
  }

  void shapes(ShapeContext& c) const override {
    const RowsOf size(c, c.in(0));
    if (size.columns != features_)
      c.refuse("input ", c.in(0), " has ", size.columns, " features; expected ", features_);
    c.out(0, {size.rows, 1});
    c.workspace(numbers_bytes(c.in_type(0), DataType::float32, c.in(0).size()));
  }

  void run(const RunContext& c) const override {
    const RowsOf size(c, c.in(0).shape);
    const float* x = numbers_of<float>(c.in(0), c.workspace_as<float>());
    float* y = c.out_data<float>(0);
    double cost = static_cast<double>(std::max<int64_t>(supports_, 1)) * (static_cast<double>(features_) + 10);
    c.pool().parallel_for(size.rows, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* row = x + i * features_;
        float sum = 0;
        if (supports_ > 0)
          for (int64_t s = 0; s < supports_; ++s)
            sum += coefficients_[s] * kernel_(row, vectors_.data() + s * features_, features_);
        else
          sum = row_dot(row, coefficients_.data(), features_);
        sum += rho_;
        y[i] = one_class_ ? (sum > 0 ? 1.0f : -1.0f) : sum;
        if (!one_class_) post_transform(transform_, y + i, 1);
      }
    });
  }

 private:
  SvmKernel kernel_;
  std::vector<float> coefficients_, vectors_;
  int64_t supports_, features_;
  bool one_class_;
  PostTransform transform_;
  float rho_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(svm_regressor) { r.add({.name = "SVMRegressor", .domain = "ai.onnx.ml", .make = make_kernel<SvmRegressor>}); }
