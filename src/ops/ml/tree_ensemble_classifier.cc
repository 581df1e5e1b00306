#include <algorithm>
#include <limits>

#include "ops/dispatch.h"
#include "ops/ml/forest.h"
#include "ops/ml/ml_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// TreeEnsembleClassifier. Scores are sums of votes plus base values. With two labels and votes for only one class id
/// that id's score s decides: scores become (1-s, s) for probabilities and (-s, s) for margins.
template <class T>
class TreeEnsembleClassifier final : public Kernel {
 public:
  explicit TreeEnsembleClassifier(const NodeInfo& info)
      : labels_(info, "classlabels_int64s"), transform_(post_transform_of(info)), forest_(source(info)) {
    for (double base : doubles_of(info, "base_values")) base_.push_back(static_cast<T>(base));
    if (!base_.empty() && static_cast<int64_t>(base_.size()) != labels_.size() &&
        (labels_.size() > 2 || base_.size() > 1))
      info.refuse(Code::invalid_graph, "base_values has ", base_.size(), " entries for ", labels_.size(), " classes");
  }

  void shapes(ShapeContext& c) const override {
    const RowsOf size(c, c.in(0));
    if (forest_.max_feature() >= size.columns)
      c.refuse("the trees read feature ", forest_.max_feature(), " of an input of shape ", c.in(0));
    c.out(0, {size.rows});
    c.out(1, {size.rows, labels_.size()});
    size_t cells = static_cast<size_t>(checked_mul(size.rows, labels_.size()));
    c.workspace(cells * (sizeof(T) + 1) + 64 + numbers_bytes(c.in_type(0), data_type_of<T>, c.in(0).size()));
  }

  void run(const RunContext& c) const override {
    const RowsOf size(c, c.in(0).shape);
    const int64_t classes = labels_.size();
    T* scores = c.workspace_as<T>();
    char* voted = reinterpret_cast<char*>(scores + size.rows * classes);
    // Element alignment for the converted input.
    char* rest = voted + (size.rows * classes + 15) / 16 * 16;
    const T* x = numbers_of<T>(c.in(0), reinterpret_cast<T*>(rest));
    constexpr int64_t kBlock = 64;  // rows that walk one tree while it is in the cache
    const int64_t blocks = (size.rows + kBlock - 1) / kBlock;
    double cost = 15.0 * static_cast<double>(forest_.trees()) * static_cast<double>(std::min(size.rows, kBlock));
    c.pool().parallel_for(blocks, cost, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kBlock, rows = std::min(kBlock, size.rows - first);
        T* sums = scores + first * classes;
        char* has = voted + first * classes;
        std::fill_n(sums, rows * classes, T(0));
        std::fill_n(has, rows * classes, char{0});
        forest_.evaluate(x + first * size.columns, rows, size.columns, [&](int64_t row, auto* vote, auto* last) {
          for (; vote != last; ++vote) {
            sums[row * classes + vote->target] += vote->weight;
            has[row * classes + vote->target] = 1;
          }
        });
        for (int64_t row = 0; row < rows; ++row) finish(c, first + row, sums + row * classes, has + row * classes);
      }
    });
  }

 private:
  ForestSource source(const NodeInfo& info) {
    if (labels_.size() == 0) info.refuse(Code::invalid_graph, "classlabels are missing");
    ForestSource source = forest_by_ids(info, "class", labels_.size());
    for (auto& vote : source.votes) {
      if (only_class_ == -1) only_class_ = vote.target;
      if (only_class_ != vote.target) only_class_ = -2;
      all_positive_ = all_positive_ && vote.weight >= 0;
    }
    return source;
  }

  void finish(const RunContext& c, int64_t row, T* sums, const char* has) const {
    const int64_t classes = labels_.size();
    float* z = c.wants(1) ? c.out_data<float>(1) + row * classes : nullptr;
    int64_t label = -1;
    float out[2];
    if (classes <= 2 && only_class_ >= 0) {
      const T s = sums[only_class_] + (base_.empty() ? T(0) : base_[base_.size() == 1 ? 0 : only_class_]);
      // Probabilities: s against 1-s. Margins, and anything that a logistic follows: s against -s.
      const bool margin = !all_positive_ || transform_ == PostTransform::logistic;
      label = margin ? (s > 0) : (s > T(0.5));
      if (classes == 1) {
        label = s > 0 ? 0 : -1;
        out[0] = static_cast<float>(s);
        if (transform_ == PostTransform::probit) post_transform(transform_, out, 1);
      } else if (only_class_ == 1 || base_.size() == 2) {
        out[1 - only_class_] = base_.size() == 2 ? static_cast<float>(base_[1 - only_class_]) : 0.0f;
        out[only_class_] = static_cast<float>(s);
        post_transform(transform_, out, 2);
      } else {
        out[1] = static_cast<float>(s);
        out[0] = margin ? -out[1] : 1.0f - out[1];
        // As onnxruntime does: softmax is not applied to such a pair.
        if (transform_ == PostTransform::logistic || transform_ == PostTransform::probit)
          post_transform(transform_, out, 2);
      }
      if (z) std::copy_n(out, classes, z);
    } else {
      // A class for which no leaf voted does not win, unless base values give every class a score.
      for (int64_t k = 0; k < classes; ++k) {
        if (!base_.empty()) sums[k] += base_.size() == 1 ? (k == 0 ? base_[0] : T(0)) : base_[k];
        if ((has[k] || base_.size() > 1) && (label < 0 || sums[k] > sums[label])) label = k;
      }
      if (label < 0) label = 0;
      if (z) {
        for (int64_t k = 0; k < classes; ++k) z[k] = static_cast<float>(sums[k]);
        post_transform(transform_, z, classes);
      }
    }
    if (c.wants(0)) labels_.write(c.out(0), row, label);
  }

  ClassLabels labels_;
  PostTransform transform_;
  int only_class_ = -1;  // the one class id that votes are for; -1: no votes, -2: several
  bool all_positive_ = true;
  Forest<T> forest_;
  std::vector<T> base_;
};

KernelPtr make(const NodeInfo& info) {
  if (info.in_type(0) == DataType::float64) return std::make_unique<TreeEnsembleClassifier<double>>(info);
  if (!is_ml_number(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  return std::make_unique<TreeEnsembleClassifier<float>>(info);
}

}  // namespace
}  // namespace epona

EPONA_OPS(tree_ensemble_classifier) { r.add({.name = "TreeEnsembleClassifier", .domain = "ai.onnx.ml", .make = make}); }
