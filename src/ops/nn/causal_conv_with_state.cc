#include <algorithm>
#include <cmath>

#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// CausalConvWithState: a depthwise convolution over time whose left padding is the end of the sequence before (or
/// zeros); output 1 is what the next call needs.
class CausalConvWithState final : public FloatKernel<CausalConvWithState> {
 public:
  explicit CausalConvWithState(const NodeInfo& info) : FloatKernel(info) {
    const std::string activation = info.attr("activation", "none");
    silu_ = activation == "silu" || activation == "swish";
    if (!silu_ && activation != "none") info.refuse(Code::invalid_graph, "activation is \"", activation, "\"");
  }

  void shapes(ShapeContext& c) const override {
    const Shape &x = c.in(0), &w = c.in(1);
    if (x.rank() != 3 || w.rank() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
      c.refuse("input ", x, " and weights ", w, ": expected {N, C, length} and {C, 1, k}");
    const Shape state{x[0], x[1], w[2] - 1};
    if (c.has(2) && c.in(2).size() != x[1]) c.refuse("bias has shape ", c.in(2), "; expected {", x[1], "}");
    if (c.has(3) && c.in(3) != state) c.refuse("past_state has shape ", c.in(3), "; expected ", state);
    c.workspace(FloatIo::bytes(c, {x, state}));
    c.out(0, x);
    c.out(1, state);
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *x = io.in<T>(0), *w = io.in<T>(1), *bias = io.in<T>(2), *past = io.in<T>(3);
    T *y = io.out<T>(0), *present = io.out<T>(1);
    const Shape& shape = c.in(0).shape;
    const int64_t channels = shape[1], length = shape[2], k = c.in(1).shape[2];
    c.pool().parallel_for(shape[0] * channels, static_cast<double>(length * (k + 10)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *in = x + i * length, *taps = w + i % channels * k, *before = past ? past + i * (k - 1) : nullptr;
        T* out = y + i * length;
        // Element t of the sequence with its past in front, which has k - 1 elements.
        auto at = [&](int64_t t) { return t >= k - 1 ? in[t - (k - 1)] : before ? before[t] : T(0); };
        for (int64_t t = 0; t < length; ++t) {
          T sum = bias ? bias[i % channels] : T(0);
          for (int64_t j = 0; j < k; ++j) sum += taps[j] * at(t + j);
          out[t] = silu_ ? sum / (1 + std::exp(-sum)) : sum;
        }
        for (int64_t t = 0; present && t < k - 1; ++t) present[i * (k - 1) + t] = at(length + t);
      }
    });
    io.store();
  }

  bool silu_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(causal_conv_with_state) {
  r.add({.name = "CausalConvWithState", .since = 27, .make = make_kernel<CausalConvWithState>});
}
