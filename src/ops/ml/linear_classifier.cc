#include "ops/ml/ml_common.h"
#include "ops/nn/rows.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// LinearClassifier and LinearRegressor: x * coefficients + intercepts, transformed; the classifier also gives the
/// label of the largest score. One score for two labels stands for (-s, s).
class Linear final : public Kernel {
 public:
  explicit Linear(const NodeInfo& info)
      : classifier_(info.node().op == "LinearClassifier"),
        labels_(info, "classlabels_ints"),
        coefficients_(info.floats("coefficients")),
        intercepts_(info.floats("intercepts")),
        transform_(post_transform_of(info)) {
    if (!is_ml_number(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    if (classifier_) {
      columns_ = std::max<int64_t>(labels_.size(), 1);
      // Without intercepts the number of scores is that of the labels.
      scores_ = intercepts_.empty() ? columns_ : static_cast<int64_t>(intercepts_.size());
      if (scores_ != columns_ && !(scores_ == 1 && columns_ == 2))
        info.refuse(Code::invalid_graph, scores_, " intercepts for ", labels_.size(), " class labels");
      if (labels_.size() == 0) labels_.ints = {1};
    } else {
      scores_ = columns_ = info.attr("targets", 1);
      if (scores_ < 1) info.refuse(Code::invalid_graph, "targets is ", scores_);
      if (!intercepts_.empty() && static_cast<int64_t>(intercepts_.size()) != scores_)
        info.refuse(Code::invalid_graph, intercepts_.size(), " intercepts for ", scores_, " targets");
    }
    if (static_cast<int64_t>(coefficients_.size()) % scores_ != 0)
      info.refuse(Code::invalid_graph, coefficients_.size(), " coefficients do not divide into ", scores_, " scores");
    features_ = static_cast<int64_t>(coefficients_.size()) / scores_;
    threshold_ = transform_ == PostTransform::none ? 0.0f : 0.5f;
  }

  void shapes(ShapeContext& c) const override {
    const RowsOf size(c, c.in(0));
    if (size.columns != features_)
      c.refuse("input ", c.in(0), " has ", size.columns, " features; expected ", features_);
    if (classifier_) c.out(0, {size.rows});
    c.out(classifier_ ? 1 : 0, {size.rows, columns_});
    // A row of scores where nobody wants them.
    c.workspace(static_cast<size_t>(size.rows * columns_) * sizeof(float) + 64 +
                numbers_bytes(c.in_type(0), DataType::float32, c.in(0).size()));
  }

  void run(const RunContext& c) const override {
    const RowsOf size(c, c.in(0).shape);
    float* scratch = c.workspace_as<float>();
    const float* x = numbers_of<float>(c.in(0), scratch + size.rows * columns_);
    const int out = classifier_ ? 1 : 0;
    float* z = c.wants(out) ? c.out_data<float>(out) : scratch;
    c.pool().parallel_for(
        size.rows, 0.4 * static_cast<double>(features_ * scores_) + 10, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            float* scores = z + i * columns_;
            for (int64_t k = 0; k < scores_; ++k)
              scores[k] = row_dot(x + i * features_, coefficients_.data() + k * features_, features_) +
                          (intercepts_.empty() ? 0.0f : intercepts_[k]);
            if (scores_ < columns_) scores[1] = scores[0], scores[0] = -scores[1];
            int64_t best = 0;
            for (int64_t k = 1; k < columns_; ++k)
              if (scores[k] > scores[best]) best = k;
            post_transform(transform_, scores, columns_);
            if (!classifier_ || !c.wants(0)) continue;
            if (columns_ == 1) best = scores[0] >= threshold_ ? 0 : -1;
            labels_.write(c.out(0), i, best);
          }
        });
  }

 private:
  bool classifier_;
  ClassLabels labels_;
  std::vector<float> coefficients_, intercepts_;
  PostTransform transform_;
  int64_t scores_, columns_, features_;
  float threshold_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(linear_classifier) {
  r.add({.name = "LinearClassifier", .domain = "ai.onnx.ml", .make = make_kernel<Linear>});
  r.add({.name = "LinearRegressor", .domain = "ai.onnx.ml", .make = make_kernel<Linear>});
}
