#include "ops/ml/ml_common.h"

#include <cmath>

#include "ops/dispatch.h"

namespace epona {

PostTransform post_transform_of(const NodeInfo& info) {
  const std::string name = info.attr("post_transform", "NONE");
  if (name == "NONE") return PostTransform::none;
  if (name == "SOFTMAX") return PostTransform::softmax;
  if (name == "LOGISTIC") return PostTransform::logistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::softmax_zero;
  if (name == "PROBIT") return PostTransform::probit;
  info.refuse(Code::invalid_graph, "post_transform is \"", name,
              "\"; expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT");
}

namespace {

template <class T>
T logistic(T x) {
  T v = T(1) / (T(1) + std::exp(-std::abs(x)));
  return x < 0 ? T(1) - v : v;
}

// sqrt(2) * erfinv(2p - 1) with Winitzki's approximation of erfinv (a = 0.147), as the standard's reference has it.
template <class T>
T probit(T p) {
  constexpr T kPiA = T(3.14159265358979 * 0.147), kA = T(0.147);
  T x = 2 * p - 1, log = std::log((1 - x) * (1 + x));
  T v = 2 / kPiA + log / 2, v2 = log / kA;
  T root = std::sqrt(-v + std::sqrt(v * v - v2));
  return T(1.41421356) * (x < 0 ? -root : root);
}

}  // namespace

template <class T>
void post_transform(PostTransform kind, T* scores, int64_t n) {
  auto normalise = [&](auto&& weight) {
    T best = scores[0], sum = 0;
    for (int64_t i = 1; i < n; ++i) best = std::max(best, scores[i]);
    for (int64_t i = 0; i < n; ++i) sum += scores[i] = weight(scores[i], best);
    for (int64_t i = 0; i < n; ++i) scores[i] = sum != 0 ? scores[i] / sum : T(0.5);
  };
  if (n == 0) return;
  switch (kind) {
    case PostTransform::none:
      return;
    case PostTransform::softmax:
      return normalise([](T x, T best) { return std::exp(x - best); });
    case PostTransform::logistic:
      for (int64_t i = 0; i < n; ++i) scores[i] = logistic(scores[i]);
      return;
    case PostTransform::softmax_zero:
      // Scores of 0 stay (about) 0.
      return normalise(
          [](T x, T best) { return x > T(1e-7) || x < T(-1e-7) ? std::exp(x - best) : x * std::exp(-best); });
    case PostTransform::probit:
      for (int64_t i = 0; i < n; ++i) scores[i] = probit(scores[i]);
      return;
  }
}
template void post_transform<float>(PostTransform, float*, int64_t);
template void post_transform<double>(PostTransform, double*, int64_t);

ClassLabels::ClassLabels(const NodeInfo& info, const char* ints_key)
    : ints(info.ints(ints_key)), strings(info.strings("classlabels_strings")) {
  if (!ints.empty() && !strings.empty())
    info.refuse(Code::invalid_graph, "both ", ints_key, " and classlabels_strings are given");
}

void ClassLabels::write(Tensor& out, int64_t i, int64_t index) const {
  if (!strings.empty())
    out.as<std::string>()[i] = index < 0 ? std::string() : strings[index];
  else
    out.as<int64_t>()[i] = index < 0 ? 0 : ints[index];
}

std::vector<double> doubles_of(const NodeInfo& info, const std::string& key) {
  std::vector<double> values;
  if (const Tensor* tensor = info.tensor_attr(key + "_as_tensor")) {
    if (tensor->type == DataType::float64) {
      auto span = tensor->span<double>();
      values.assign(span.begin(), span.end());
    } else {
      auto span = tensor->span<float>();
      values.assign(span.begin(), span.end());
    }
    return values;
  }
  for (float v : info.floats(key)) values.push_back(v);
  return values;
}

using MlNumbers = Types<float, double, int64_t, int32_t>;

bool is_ml_number(DataType type) { return contains(MlNumbers{}, type); }

template <class T>
const T* numbers_of(const Tensor& x, T* scratch) {
  if (x.type == data_type_of<T>) return x.as<T>();
  dispatch(x.type, MlNumbers{}, [&]<class From>() {
    const From* from = x.as<From>();
    const int64_t n = x.size();
    for (int64_t i = 0; i < n; ++i) scratch[i] = static_cast<T>(from[i]);
  });
  return scratch;
}
template const float* numbers_of<float>(const Tensor&, float*);
template const double* numbers_of<double>(const Tensor&, double*);

size_t numbers_bytes(DataType from, DataType to, int64_t n) { return from == to ? 0 : type_bytes(to, n); }

}  // namespace epona
