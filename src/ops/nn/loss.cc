#include <cmath>

#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss over {N, C, spatial dims...}: minus the (log-softmaxed) score
/// of the target class, weighted by class; targets equal to ignore_index count nothing.
class Loss final : public FloatKernel<Loss> {
 public:
  explicit Loss(const NodeInfo& info)
      : FloatKernel(info),
        softmax_(info.node().op == "SoftmaxCrossEntropyLoss"),
        ignores_(info.has_attr("ignore_index")),
        ignored_(info.attr("ignore_index", 0)) {
    const std::string reduction = info.attr("reduction", "mean");
    if (reduction == "none")
      reduction_ = none;
    else if (reduction == "mean")
      reduction_ = mean;
    else if (reduction == "sum")
      reduction_ = sum;
    else
      info.refuse(Code::invalid_graph, "reduction is \"", reduction, "\"; expected none, mean or sum");
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() < 2) c.refuse("scores have shape ", x, "; expected {N, C, ...}");
    Shape target = x;
    target.erase(1);
    if (c.in(1) != target) c.refuse("targets have shape ", c.in(1), "; expected ", target);
    if (c.has(2) && c.in(2) != Shape{x[1]}) c.refuse("weights have shape ", c.in(2), "; expected {", x[1], "}");
    const Shape loss = reduction_ == none ? target : Shape{};
    // Log-probabilities, losses of single targets.
    const size_t width = c.in_type(0) == DataType::float64 ? 8 : 4;
    c.workspace(FloatIo::align(static_cast<size_t>(x.size()) * width) +
                FloatIo::align(static_cast<size_t>(target.size()) * width) + FloatIo::bytes(c, {loss, x}));
    c.out(0, loss);
    if (softmax_) c.out(1, x);
  }

 private:
  friend FloatKernel;
  enum { none, mean, sum } reduction_;

  template <class T>
  void compute(const RunContext& c) const {
    const Shape& shape = c.in(0).shape;
    const int64_t batch = shape[0], classes = shape[1], places = shape.size(2, shape.rank());
    const size_t probs = FloatIo::align(static_cast<size_t>(shape.size()) * sizeof(T));
    FloatIo io(c, probs + FloatIo::align(static_cast<size_t>(batch * places) * sizeof(T)));
    const T *x = io.in<T>(0), *weights = io.in<T>(2);
    T* out = io.out<T>(0);
    if (softmax_) {
      T* log_prob = io.out<T>(1);
      if (!log_prob) log_prob = c.workspace_as<T>();
      log_softmax(c, x, log_prob, batch, classes, places);
      x = log_prob;
    }
    T* losses = reduction_ == none ? out : reinterpret_cast<T*>(c.workspace_as<char>() + probs);
    double total = 0, weight_sum = 0;
    for (int64_t i = 0; i < batch * places; ++i) {
      const int64_t target = c.in(1).type == DataType::int32 ? c.data<int32_t>(1)[i] : c.data<int64_t>(1)[i];
      losses[i] = 0;
      if (ignores_ && target == ignored_) continue;
      if (target < 0 || target >= classes) c.refuse("target ", target, " is out of range for ", classes, " classes");
      const T weight = weights ? weights[target] : T(1);
      losses[i] = -weight * x[(i / places * classes + target) * places + i % places];
      total += static_cast<double>(losses[i]);
      weight_sum += static_cast<double>(weight);
    }
    if (reduction_ == sum) *out = static_cast<T>(total);
    if (reduction_ == mean) *out = static_cast<T>(total / weight_sum);
    io.store();
  }

  template <class T>
  static void log_softmax(const RunContext& c, const T* x, T* y, int64_t batch, int64_t classes, int64_t places) {
    c.pool().parallel_for(batch * places, 8.0 * static_cast<double>(classes), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t start = i / places * classes * places + i % places;
        T best = classes > 0 ? x[start] : T(0), total = 0;
        for (int64_t k = 1; k < classes; ++k) best = std::max(best, x[start + k * places]);
        for (int64_t k = 0; k < classes; ++k) total += std::exp(x[start + k * places] - best);
        const T shift = best + std::log(total);
        for (int64_t k = 0; k < classes; ++k) y[start + k * places] = x[start + k * places] - shift;
      }
    });
  }

  bool softmax_, ignores_;
  int64_t ignored_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(loss) {
  r.add({.name = "NegativeLogLikelihoodLoss", .since = 12, .make = make_kernel<Loss>});
  r.add({.name = "SoftmaxCrossEntropyLoss", .since = 12, .make = make_kernel<Loss>});
}
