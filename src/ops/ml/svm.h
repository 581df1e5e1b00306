#pragma once
#include <cmath>
#include <vector>

#include "ops/ml/ml_common.h"
#include "ops/nn/rows.h"

namespace epona {

/// The kernel function of a support vector machine.
struct SvmKernel {
  enum Kind { linear, poly, rbf, sigmoid } kind = linear;
  float gamma = 0, coef0 = 0, degree = 0;

  explicit SvmKernel(const NodeInfo& info) {
    const std::string name = info.attr("kernel_type", "LINEAR");
    if (name == "LINEAR")
      kind = linear;
    else if (name == "POLY")
      kind = poly;
    else if (name == "RBF")
      kind = rbf;
    else if (name == "SIGMOID")
      kind = sigmoid;
    else
      info.refuse(Code::invalid_graph, "kernel_type is \"", name, "\"; expected LINEAR, POLY, RBF or SIGMOID");
    const auto parameters = info.floats("kernel_params");
    if (!parameters.empty() && parameters.size() != 3)
      info.refuse(Code::invalid_graph, "kernel_params has ", parameters.size(),
                  " entries; expected gamma, coef0, degree");
    if (!parameters.empty()) gamma = parameters[0], coef0 = parameters[1], degree = parameters[2];
  }

  float operator()(const float* a, const float* b, int64_t n) const {
    switch (kind) {
      case linear:
        return row_dot(a, b, n);
      case poly:
        return std::pow(gamma * row_dot(a, b, n) + coef0, degree);
      case sigmoid:
        return std::tanh(gamma * row_dot(a, b, n) + coef0);
      case rbf:
        return std::exp(-gamma * row_reduce<float>(n, [&](int64_t i) { return (a[i] - b[i]) * (a[i] - b[i]); }));
    }
    return 0;
  }
};

}  // namespace epona
