#include <algorithm>

#include "ops/float_io.h"
#include "ops/ml/svm.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// SVMClassifier. With support vectors: one machine for every pair of classes; the class with most votes wins, and with
/// prob_a, prob_b the scores become probabilities as libsvm couples them. Without: one linear score a class.
class SvmClassifier final : public Kernel {
 public:
  explicit SvmClassifier(const NodeInfo& info)
      : labels_(info, "classlabels_ints"),
        kernel_(info),
        transform_(post_transform_of(info)),
        coefficients_(info.floats("coefficients")),
        vectors_(info.floats("support_vectors")),
        rho_(info.floats("rho")),
        prob_a_(info.floats("prob_a")),
        prob_b_(info.floats("prob_b")),
        per_class_(info.ints("vectors_per_class")) {
    if (!is_ml_number(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    classes_ = std::max<int64_t>(labels_.size(), 1);
    if (labels_.size() == 0) labels_.ints = {1};
    for (int64_t n : per_class_) {
      if (n < 0) info.refuse(Code::invalid_graph, "vectors_per_class holds ", n);
      starts_.push_back(vector_count_);
      vector_count_ = checked_add(vector_count_, n);
    }
    const int64_t coefficients = static_cast<int64_t>(coefficients_.size());
    const int64_t sizes = static_cast<int64_t>(vectors_.size());
    const size_t pairs = static_cast<size_t>(classes_ * (classes_ - 1) / 2);
    if (vector_count_ > 0) {
      if (static_cast<int64_t>(per_class_.size()) != classes_ || classes_ < 2)
        info.refuse(Code::invalid_graph, "vectors_per_class has ", per_class_.size(), " entries for ", classes_,
                    " classes");
      if (sizes % vector_count_ != 0 || coefficients != vector_count_ * (classes_ - 1))
        info.refuse(Code::invalid_graph, "support_vectors (", sizes, ") and coefficients (", coefficients,
                    ") do not fit ", vector_count_, " vectors and ", classes_, " classes");
      if (rho_.size() < pairs) info.refuse(Code::invalid_graph, "rho has ", rho_.size(), " entries; expected ", pairs);
      if (!prob_a_.empty() && (prob_a_.size() < pairs || prob_b_.size() < pairs))
        info.refuse(Code::invalid_graph, "prob_a and prob_b should have ", pairs, " entries");
      features_ = sizes / vector_count_;
    } else {
      if (coefficients % classes_ != 0)
        info.refuse(Code::invalid_graph, "coefficients (", coefficients, ") do not divide into ", classes_, " classes");
      features_ = coefficients / classes_;
      kernel_.kind = SvmKernel::linear;
    }
    pairwise_ = vector_count_ > 0 && prob_a_.empty();
    // A single pair gives two scores.
    columns_ = pairwise_ ? std::max<int64_t>(static_cast<int64_t>(pairs), 2) : classes_;
  }

  void shapes(ShapeContext& c) const override {
    const RowsOf size(c, c.in(0));
    if (size.columns != features_)
      c.refuse("input ", c.in(0), " has ", size.columns, " features; expected ", features_);
    c.out(0, {size.rows});
    c.out(1, {size.rows, columns_});
    c.workspace(FloatIo::align(static_cast<size_t>(scratch_floats() * size.rows) * sizeof(float)) +
                numbers_bytes(c.in_type(0), DataType::float32, c.in(0).size()));
  }

  void run(const RunContext& c) const override {
    const RowsOf size(c, c.in(0).shape);
    const int64_t scratch = scratch_floats();
    float* work = c.workspace_as<float>();
    const float* x = numbers_of<float>(
        c.in(0), reinterpret_cast<float*>(c.workspace_as<char>() +
                                          FloatIo::align(static_cast<size_t>(scratch * size.rows) * sizeof(float))));
    float* z = c.out_data<float>(1);
    double cost = static_cast<double>(vector_count_ + classes_) * (static_cast<double>(features_) + 10);
    c.pool().parallel_for(size.rows, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float* scores = work + i * scratch;
        const int64_t best = vector_count_ > 0 ? vote(x + i * features_, scores) : linear(x + i * features_, scores);
        if (c.wants(0)) labels_.write(c.out(0), i, best);
        if (z) std::copy_n(scores, columns_, z + i * columns_);
      }
    });
  }

 private:
  /// Final scores, votes, kernels and, for probabilities, pairs and two matrices with two vectors.
  int64_t scratch_floats() const {
    const int64_t pairs = classes_ * (classes_ - 1) / 2;
    return std::max(columns_, pairs) + pairs + classes_ + vector_count_ +
           (prob_a_.empty() ? 0 : 2 * classes_ * classes_ + 2 * classes_);
  }

  int64_t linear(const float* x, float* scores) const {
    int64_t best = 0;
    for (int64_t k = 0; k < classes_; ++k) {
      const float rho = rho_.empty() ? 0 : rho_.size() == static_cast<size_t>(classes_) ? rho_[k] : rho_[0];
      scores[k] = row_dot(x, coefficients_.data() + k * features_, features_) + rho;
      if (scores[k] > scores[best]) best = k;
    }
    if (classes_ == 1) best = scores[0] > 0 ? 0 : -1;
    post_transform(transform_, scores, classes_);
    return best;
  }

  int64_t vote(const float* x, float* scores) const {
    const int64_t pairs = classes_ * (classes_ - 1) / 2;
    float* pair = scores + std::max(columns_, pairs);
    float* votes = pair + pairs;
    float* kernels = votes + classes_;
    for (int64_t v = 0; v < vector_count_; ++v) kernels[v] = kernel_(x, vectors_.data() + v * features_, features_);
    std::fill_n(votes, classes_, 0.0f);
    int64_t p = 0;
    for (int64_t i = 0; i < classes_; ++i)
      for (int64_t j = i + 1; j < classes_; ++j, ++p) {
        // Row j-1 of the coefficients is for class i against j, row i for class j against i.
        const float* ci = coefficients_.data() + (j - 1) * vector_count_ + starts_[i];
        const float* cj = coefficients_.data() + i * vector_count_ + starts_[j];
        pair[p] = rho_[p] + row_dot(ci, kernels + starts_[i], per_class_[i]) +
                  row_dot(cj, kernels + starts_[j], per_class_[j]);
        votes[pair[p] > 0 ? i : j] += 1;
      }
    const int64_t best = std::max_element(votes, votes + classes_) - votes;
    if (!prob_a_.empty()) {
      probabilities(pair, scores, kernels + vector_count_);
      post_transform(transform_, scores, classes_);
    } else if (pairs == 1) {
      scores[0] = -pair[0];
      scores[1] = pair[0];
      post_transform(transform_, scores, 2);
    } else {
      std::copy_n(pair, pairs, scores);
      post_transform(transform_, scores, pairs);
    }
    return best;
  }

  /// Class probabilities from those of the pairs (Wu, Lin and Weng 2004, second method).
  void probabilities(const float* pair, float* p, float* scratch) const {
    const int64_t k = classes_;
    float *r = scratch, *q = r + k * k, *qp = q + k * k;
    int64_t index = 0;
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = i + 1; j < k; ++j, ++index) {
        float v = 1.0f / (1.0f + std::exp(pair[index] * prob_a_[index] + prob_b_[index]));
        v = std::clamp(v, 1e-7f, 1 - 1e-7f);
        r[i * k + j] = v;
        r[j * k + i] = 1 - v;
      }
    for (int64_t t = 0; t < k; ++t) {
      p[t] = 1.0f / static_cast<float>(k);
      float sum = 0;
      for (int64_t j = 0; j < k; ++j) {
        if (j == t) continue;
        sum += r[j * k + t] * r[j * k + t];
        q[t * k + j] = -r[j * k + t] * r[t * k + j];
      }
      q[t * k + t] = sum;
    }
    const float tolerance = 0.005f / static_cast<float>(k);
    for (int64_t round = 0, rounds = std::max<int64_t>(100, k); round < rounds; ++round) {
      float pqp = 0, error = 0;
      for (int64_t t = 0; t < k; ++t) {
        qp[t] = row_dot(q + t * k, p, k);
        pqp += p[t] * qp[t];
      }
      for (int64_t t = 0; t < k; ++t) error = std::max(error, std::abs(qp[t] - pqp));
      if (error < tolerance) break;
      for (int64_t t = 0; t < k; ++t) {
        const float diff = (pqp - qp[t]) / q[t * k + t];
        p[t] += diff;
        pqp = (pqp + diff * (diff * q[t * k + t] + 2 * qp[t])) / (1 + diff) / (1 + diff);
        for (int64_t j = 0; j < k; ++j) {
          qp[j] = (qp[j] + diff * q[t * k + j]) / (1 + diff);
          p[j] /= 1 + diff;
        }
      }
    }
  }

  ClassLabels labels_;
  SvmKernel kernel_;
  PostTransform transform_;
  std::vector<float> coefficients_, vectors_, rho_, prob_a_, prob_b_;
  std::vector<int64_t> per_class_, starts_;
  int64_t classes_, vector_count_ = 0, features_, columns_;
  bool pairwise_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(svm_classifier) {
  r.add({.name = "SVMClassifier", .domain = "ai.onnx.ml", .make = make_kernel<SvmClassifier>});
}
