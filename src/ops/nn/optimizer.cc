#include <cmath>

#include "ops/registry.h"

namespace epona {
namespace {

/// Adagrad, Adam and Momentum of ai.onnx.preview.training. Inputs: learning rate, update count, then lists of tensors
/// (values, gradients, states...); outputs: the new values and states in the same order.
class Optimizer final : public Kernel {
 public:
  explicit Optimizer(const NodeInfo& info)
      : norm_(info.attr("norm_coefficient", 0.0f)), epsilon_(info.attr("epsilon", 0.0f)) {
    const std::string& op = info.node().op;
    if (op == "Adagrad") {
      kind_ = adagrad;
      decay_ = info.attr("decay_factor", 0.0f);
      epsilon_ = info.attr("epsilon", 1e-6f);
    } else if (op == "Adam") {
      kind_ = adam;
      alpha_ = info.attr("alpha", 0.9f);
      beta_ = info.attr("beta", 0.999f);
      epsilon_ = info.attr("epsilon", 1e-6f);
      norm_post_ = info.attr("norm_coefficient_post", 0.0f);
    } else {
      kind_ = momentum;
      alpha_ = info.attr("alpha", 0.0f);
      beta_ = info.attr("beta", 0.0f);
      const std::string mode = info.attr("mode", "standard");
      nesterov_ = mode == "nesterov";
      if (!nesterov_ && mode != "standard") info.refuse(Code::invalid_graph, "mode is \"", mode, "\"");
    }
    lists_ = kind_ == adam ? 4 : 3;
    if (info.inputs() < 2 + lists_ || (info.inputs() - 2) % lists_ != 0)
      info.refuse(Code::invalid_graph, info.inputs(), " inputs; expected 2 and a multiple of ", lists_);
    for (int i = 2; i < info.inputs(); ++i)
      if (info.in_type(i) != DataType::float32 && info.in_type(i) != DataType::float64)
        info.refuse(Code::not_implemented, "type ", info.in_type(i));
  }

  void shapes(ShapeContext& c) const override {
    const int n = (c.inputs() - 2) / lists_;
    if (c.in(0).size() != 1 || c.in(1).size() != 1) c.refuse("learning rate and update count should be scalars");
    for (int i = 2; i < c.inputs(); ++i)
      if (c.in(i) != c.in(2 + (i - 2) % n))
        c.refuse("input ", i, " has shape ", c.in(i), "; expected that of its value");
    for (int o = 0; o < c.outputs(); ++o) c.out(o, c.in(2 + o % n));
  }

  void run(const RunContext& c) const override {
    const int n = (c.inputs() - 2) / lists_;
    for (int i = 0; i < n; ++i) {
      if (c.in(2 + i).type == DataType::float64)
        update<double>(c, i, n);
      else
        update<float>(c, i, n);
    }
  }

 private:
  enum { adagrad, adam, momentum } kind_;

  template <class T>
  void update(const RunContext& c, int i, int n) const {
    auto in = [&](int list) { return c.data<T>(2 + list * n + i); };
    auto out = [&](int list) { return c.out_data<T>(list * n + i); };
    const T* x = in(0);
    const T* g = in(1);
    T *x_out = out(0), *v_out = out(1), *h_out = kind_ == adam ? out(2) : nullptr;
    const double rate = c.in(0).type == DataType::float64 ? *c.data<double>(0) : double{*c.data<float>(0)};
    const int64_t step = *c.data<int64_t>(1);
    const T norm = static_cast<T>(norm_), alpha = static_cast<T>(alpha_), epsilon = static_cast<T>(epsilon_);
    T beta = static_cast<T>(beta_);
    const int64_t size = c.in(2 + i).size();
    if (kind_ == adagrad) {
      const T r = static_cast<T>(rate / (1 + static_cast<double>(step) * double{decay_}));
      const T* h = in(2);
      for (int64_t k = 0; k < size; ++k) {
        const T gradient = norm * x[k] + g[k], sum = h[k] + gradient * gradient;
        if (x_out) x_out[k] = x[k] - r * gradient / (std::sqrt(sum) + epsilon);
        if (v_out) v_out[k] = sum;
      }
    } else if (kind_ == adam) {
      const double t = static_cast<double>(step);
      const T r = static_cast<T>(
          step > 0 ? rate * std::sqrt(1 - std::pow(double{beta_}, t)) / (1 - std::pow(double{alpha_}, t)) : rate);
      const T *v = in(2), *h = in(3);
      for (int64_t k = 0; k < size; ++k) {
        const T gradient = norm * x[k] + g[k];
        const T mean = alpha * v[k] + (1 - alpha) * gradient, square = beta * h[k] + (1 - beta) * gradient * gradient;
        if (x_out) x_out[k] = (1 - static_cast<T>(norm_post_)) * (x[k] - r * mean / (std::sqrt(square) + epsilon));
        if (v_out) v_out[k] = mean;
        if (h_out) h_out[k] = square;
      }
    } else {
      if (step <= 0) beta = 1;
      const T r = static_cast<T>(rate);
      const T* v = in(2);
      for (int64_t k = 0; k < size; ++k) {
        const T gradient = norm * x[k] + g[k], next = alpha * v[k] + beta * gradient;
        if (x_out) x_out[k] = x[k] - r * (nesterov_ ? gradient + alpha * next : next);
        if (v_out) v_out[k] = next;
      }
    }
  }

  float norm_, epsilon_, decay_ = 0, alpha_ = 0, beta_ = 0, norm_post_ = 0;
  bool nesterov_ = false;
  int lists_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(optimizer) {
  for (const char* name : {"Adagrad", "Adam", "Momentum"})
    r.add({.name = name, .domain = "ai.onnx.preview.training", .make = make_kernel<Optimizer>});
}
