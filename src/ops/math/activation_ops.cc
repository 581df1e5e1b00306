#include <cmath>

#include "ops/elementwise.h"

namespace epona {
namespace {

/// Comparisons are written so that NaN falls through to the branch that keeps it.
struct ReluOp {
  static constexpr double kNs = 0.5;
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};

struct LeakyReluOp {
  static constexpr double kNs = 0.6;
  float alpha;
  explicit LeakyReluOp(const NodeInfo& info) : alpha(info.attr("alpha", 0.01f)) {}
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? static_cast<T>(alpha) * x : x;
  }
};

struct EluOp {
  static constexpr double kNs = 6;
  float alpha;
  explicit EluOp(const NodeInfo& info) : alpha(info.attr("alpha", 1.0f)) {}
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? static_cast<T>(alpha) * std::expm1(x) : x;
  }
};

struct SeluOp {
  static constexpr double kNs = 6;
  float alpha, gamma;
  explicit SeluOp(const NodeInfo& info)
      : alpha(info.attr("alpha", 1.67326319217681884765625f)), gamma(info.attr("gamma", 1.05070102214813232421875f)) {}
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(gamma) * (x < T(0) ? static_cast<T>(alpha) * std::expm1(x) : x);
  }
};

template <class T>
T unit_clamp(T x) {
  return x < T(0) ? T(0) : x > T(1) ? T(1) : x;
}

struct HardSigmoidOp {
  static constexpr double kNs = 0.7;
  float alpha, beta;
  explicit HardSigmoidOp(const NodeInfo& info) : alpha(info.attr("alpha", 0.2f)), beta(info.attr("beta", 0.5f)) {}
  template <class T>
  T operator()(T x) const {
    return unit_clamp(static_cast<T>(alpha) * x + static_cast<T>(beta));
  }
};

struct HardSwishOp {
  static constexpr double kNs = 0.8;
  template <class T>
  T operator()(T x) const {
    return x * unit_clamp(x / T(6) + T(0.5));
  }
};

template <class T>
T softplus(T x) {
  return (x > T(0) ? x : T(0)) + std::log1p(std::exp(-std::abs(x)));
}

struct SoftplusOp {
  static constexpr double kNs = 12;
  template <class T>
  T operator()(T x) const {
    return softplus(x);
  }
};

struct SoftsignOp {
  static constexpr double kNs = 1;
  template <class T>
  T operator()(T x) const {
    return x / (T(1) + std::abs(x));
  }
};

struct ThresholdedReluOp {
  static constexpr double kNs = 0.6;
  float alpha;
  explicit ThresholdedReluOp(const NodeInfo& info) : alpha(info.attr("alpha", 1.0f)) {}
  template <class T>
  T operator()(T x) const {
    return x <= static_cast<T>(alpha) ? T(0) : x;
  }
};

struct MishOp {
  static constexpr double kNs = 20;
  template <class T>
  T operator()(T x) const {
    return x * std::tanh(softplus(x));
  }
};

struct SwishOp {
  static constexpr double kNs = 7;
  float alpha;
  explicit SwishOp(const NodeInfo& info) : alpha(info.attr("alpha", 1.0f)) {}
  template <class T>
  T operator()(T x) const {
    return x / (T(1) + std::exp(-static_cast<T>(alpha) * x));
  }
};

struct GeluOp {
  static constexpr double kNs = 10;
  bool tanh;
  explicit GeluOp(const NodeInfo& info) {
    std::string approximate = info.attr("approximate", "none");
    if (approximate != "none" && approximate != "tanh")
      info.refuse(Code::invalid_argument, "attribute approximate is '", approximate, "', expected 'none' or 'tanh'");
    tanh = approximate == "tanh";
  }
  template <class T>
  T operator()(T x) const {
    if (tanh) return T(0.5) * x * (T(1) + std::tanh(T(0.7978845608028654) * (x + T(0.044715) * x * x * x)));
    return T(0.5) * x * (T(1) + std::erf(x * T(0.7071067811865476)));
  }
};

/// Values within [-lambd, lambd] become zero, the others move towards zero by bias. Integers: computed in double.
struct ShrinkOp {
  static constexpr double kNs = 1;
  float bias, lambd;
  explicit ShrinkOp(const NodeInfo& info) : bias(info.attr("bias", 0.0f)), lambd(info.attr("lambd", 0.5f)) {}
  template <class T>
  T operator()(T x) const {
    using C = std::conditional_t<std::is_integral_v<T>, double, T>;
    C value = static_cast<C>(x);
    if (value < -static_cast<C>(lambd)) return static_cast<T>(value + static_cast<C>(bias));
    if (value > static_cast<C>(lambd)) return static_cast<T>(value - static_cast<C>(bias));
    return T(0);
  }
};

template <class Op, class List = Types<float, double>>
OpDef unary(const char* name, int since) {
  return {.name = name, .since = since, .make = make_kernel<Unary<Op, List>>, .inplace = 1};
}

}  // namespace
}  // namespace epona

EPONA_OPS(activation_ops) {
  r.add(unary<ReluOp, decltype(Types<float, double>{} + SignedTypes{})>("Relu", 6));
  r.add(unary<LeakyReluOp>("LeakyRelu", 6));
  r.add(unary<EluOp>("Elu", 6));
  r.add(unary<SeluOp>("Selu", 6));
  r.add(unary<HardSigmoidOp>("HardSigmoid", 6));
  r.add(unary<HardSwishOp>("HardSwish", 14));
  r.add(unary<SoftplusOp>("Softplus", 1));
  r.add(unary<SoftsignOp>("Softsign", 1));
  r.add(unary<ThresholdedReluOp>("ThresholdedRelu", 10));
  r.add(unary<MishOp>("Mish", 18));
  r.add(unary<SwishOp>("Swish", 24));
  r.add(unary<GeluOp>("Gelu", 20));
  r.add(unary<ShrinkOp, decltype(Types<float, double>{} + IntegerTypes{})>("Shrink", 9));
}
