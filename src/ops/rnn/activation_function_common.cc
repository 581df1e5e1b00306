#include <algorithm>
#include <cmath>

#include "kernels/activation.h"
#include "ops/rnn/activation_function.h"

namespace epona {
namespace {

struct Description {
  const char* name;
  RnnActivation::Kind kind;
  bool has_alpha, has_beta;
  float alpha, beta;
};

constexpr Description kDescriptions[] = {
    {"relu", RnnActivation::relu, false, false, 0, 0},
    {"tanh", RnnActivation::tanh, false, false, 0, 0},
    {"sigmoid", RnnActivation::sigmoid, false, false, 0, 0},
    {"affine", RnnActivation::affine, true, true, 1, 0},
    {"leakyrelu", RnnActivation::leaky_relu, true, false, 0.01f, 0},
    {"thresholdedrelu", RnnActivation::thresholded_relu, true, false, 1, 0},
    {"scaledtanh", RnnActivation::scaled_tanh, true, true, 1, 1},
    {"hardsigmoid", RnnActivation::hard_sigmoid, true, true, 0.2f, 0.5f},
    {"elu", RnnActivation::elu, true, false, 1, 0},
    {"softsign", RnnActivation::softsign, false, false, 0, 0},
    {"softplus", RnnActivation::softplus, false, false, 0, 0},
};

template <class T>
T value(const RnnActivation& f, T x) {
  const T a = static_cast<T>(f.alpha), b = static_cast<T>(f.beta);
  switch (f.kind) {
    case RnnActivation::relu:
      return x < 0 ? T(0) : x;
    case RnnActivation::tanh:
      return std::tanh(x);
    case RnnActivation::sigmoid:
      return T(1) / (T(1) + std::exp(-x));
    case RnnActivation::affine:
      return a * x + b;
    case RnnActivation::leaky_relu:
      return x < 0 ? a * x : x;
    case RnnActivation::thresholded_relu:
      return x < a ? T(0) : x;
    case RnnActivation::scaled_tanh:
      return a * std::tanh(b * x);
    case RnnActivation::hard_sigmoid:
      return std::min(std::max(a * x + b, T(0)), T(1));
    case RnnActivation::elu:
      return x < 0 ? a * std::expm1(x) : x;
    case RnnActivation::softsign:
      return x / (T(1) + std::abs(x));
    case RnnActivation::softplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  return x;
}

bool apply_fast(const RnnActivation& f, float* x, int64_t n) {
  switch (f.kind) {
    case RnnActivation::relu:
      activate(Activation::relu(), x, x, n);
      return true;
    case RnnActivation::tanh:
      activate(Activation::tanh(), x, x, n);
      return true;
    case RnnActivation::sigmoid:
      activate(Activation::sigmoid(), x, x, n);
      return true;
    case RnnActivation::leaky_relu:
      activate(Activation::leaky_relu(f.alpha), x, x, n);
      return true;
    case RnnActivation::hard_sigmoid:
      activate(Activation::hard_sigmoid(f.alpha, f.beta), x, x, n);
      return true;
    default:
      return false;
  }
}

}  // namespace

template <class T>
void RnnActivation::apply(T* x, int64_t n) const {
  if (clip > 0) {
    const T limit = static_cast<T>(clip);
    for (int64_t i = 0; i < n; ++i) x[i] = std::min(std::max(x[i], -limit), limit);
  }
  if constexpr (std::is_same_v<T, float>)
    if (apply_fast(*this, x, n)) return;
  for (int64_t i = 0; i < n; ++i) x[i] = value(*this, x[i]);
}
template void RnnActivation::apply<float>(float*, int64_t) const;
template void RnnActivation::apply<double>(double*, int64_t) const;

std::vector<RnnActivation> rnn_activations(const NodeInfo& info, int directions,
                                           const std::vector<std::string>& defaults) {
  auto names = info.strings("activations");
  const auto alphas = info.floats("activation_alpha"), betas = info.floats("activation_beta");
  const float clip = info.attr("clip", 0.0f);
  if (!(clip >= 0)) info.refuse(Code::invalid_graph, "clip is ", clip);
  const size_t count = defaults.size() * static_cast<size_t>(directions);
  if (names.empty())
    for (int d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != count)
    info.refuse(Code::invalid_graph, "activations has ", names.size(), " entries; expected ", count);
  std::vector<RnnActivation> list;
  size_t alpha = 0, beta = 0;  // the lists hold values only for the functions that take them
  for (const std::string& name : names) {
    std::string lower = name;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    auto it =
        std::find_if(std::begin(kDescriptions), std::end(kDescriptions), [&](auto& d) { return lower == d.name; });
    if (it == std::end(kDescriptions)) info.refuse(Code::invalid_graph, "activation \"", name, "\" is not known");
    RnnActivation f{it->kind, it->alpha, it->beta, clip};
    if (it->has_alpha && alpha < alphas.size()) f.alpha = alphas[alpha++];
    if (it->has_beta && beta < betas.size()) f.beta = betas[beta++];
    list.push_back(f);
  }
  return list;
}

}  // namespace epona
