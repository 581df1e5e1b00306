#include <algorithm>
#include <cmath>

#include "ops/float_io.h"
#include "ops/nn/rows.h"
#include "ops/registry.h"

namespace epona {
namespace {

enum Input { kQuery, kKey, kValue, kPast, kDecay, kBeta };

/// LinearAttention: a state {key size, value size} per KV head that every token decays (gated rules), corrects (delta
/// rules), adds its key times value to, and reads with its query.
class LinearAttention final : public FloatKernel<LinearAttention> {
 public:
  explicit LinearAttention(const NodeInfo& info)
      : FloatKernel(info),
        q_heads_(info.attr("q_num_heads", 0)),
        kv_heads_(info.attr("kv_num_heads", 0)),
        scale_(info.attr("scale", 0.0f)) {
    if (q_heads_ < 1 || kv_heads_ < 1 || q_heads_ % kv_heads_ != 0)
      info.refuse(Code::invalid_graph, "q_num_heads ", q_heads_, " is not a multiple of kv_num_heads ", kv_heads_);
    const std::string rule = info.attr("update_rule", "gated_delta");
    gated_ = rule == "gated" || rule == "gated_delta";
    delta_ = rule == "delta" || rule == "gated_delta";
    if (!gated_ && !delta_ && rule != "linear") info.refuse(Code::invalid_graph, "update_rule is \"", rule, "\"");
    if (gated_ != info.has(kDecay))
      info.refuse(Code::invalid_graph, "update_rule ", rule, gated_ ? " needs" : " forbids", " decay");
    if (delta_ != info.has(kBeta))
      info.refuse(Code::invalid_graph, "update_rule ", rule, delta_ ? " needs" : " forbids", " beta");
  }

  void shapes(ShapeContext& c) const override {
    const Shape &q = c.in(kQuery), &k = c.in(kKey), &v = c.in(kValue);
    bool fits = q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && q[2] % q_heads_ == 0 && v[2] % kv_heads_ == 0;
    fits = fits && k == Shape{q[0], q[1], q[2] / q_heads_ * kv_heads_} && v[0] == q[0] && v[1] == q[1];
    if (!fits) c.refuse("query ", q, ", key ", k, " and value ", v, " do not fit");
    const int64_t dk = q[2] / q_heads_, dv = v[2] / kv_heads_;
    const Shape state{q[0], kv_heads_, dk, dv};
    if (c.has(kPast) && c.in(kPast) != state) c.refuse("past_state has shape ", c.in(kPast), "; expected ", state);
    if (gated_ && c.in(kDecay) != Shape{q[0], q[1], kv_heads_} && c.in(kDecay) != k)
      c.refuse("decay has shape ", c.in(kDecay), " for keys of shape ", k);
    if (delta_ && c.in(kBeta) != Shape{q[0], q[1], kv_heads_} && c.in(kBeta) != Shape{q[0], q[1], 1})
      c.refuse("beta has shape ", c.in(kBeta), " for ", kv_heads_, " heads");
    const Shape y{q[0], q[1], q_heads_ * dv};
    const size_t width = c.in_type(0) == DataType::float64 ? 8 : 4;
    // States in work and one corrected value each.
    c.workspace(FloatIo::align(static_cast<size_t>(state.size() + q[0] * kv_heads_ * dv) * width) +
                FloatIo::bytes(c, {y, state}));
    c.out(0, y);
    c.out(1, state);
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    const Shape& qs = c.in(kQuery).shape;
    const int64_t batch = qs[0], length = qs[1], dk = qs[2] / q_heads_, dv = c.in(kValue).shape[2] / kv_heads_;
    const int64_t states = batch * kv_heads_ * dk * dv, share = q_heads_ / kv_heads_;
    FloatIo io(c, static_cast<size_t>(states + batch * kv_heads_ * dv) * sizeof(T));
    const T *q = io.in<T>(kQuery), *k = io.in<T>(kKey), *v = io.in<T>(kValue), *past = io.in<T>(kPast);
    const T *decay = io.in<T>(kDecay), *beta = io.in<T>(kBeta);
    T *y = io.out<T>(0), *present = io.out<T>(1), *work = c.workspace_as<T>();
    const bool per_key = gated_ && c.in(kDecay).shape[2] != kv_heads_;
    const bool one_beta = delta_ && c.in(kBeta).shape[2] == 1 && kv_heads_ != 1;
    const T scale = scale_ != 0 ? static_cast<T>(scale_) : T(1) / std::sqrt(static_cast<T>(dk));
    double cost = static_cast<double>(length * dk * dv) * (2.0 + static_cast<double>(share));
    c.pool().parallel_for(batch * kv_heads_, cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t b = i / kv_heads_, h = i % kv_heads_;
        T *state = work + i * dk * dv, *value = work + states + i * dv;
        if (past)
          std::copy_n(past + i * dk * dv, dk * dv, state);
        else
          std::fill_n(state, dk * dv, T(0));
        for (int64_t t = 0; t < length; ++t) {
          const int64_t row = b * length + t;
          const T *key = k + (row * kv_heads_ + h) * dk, *fresh = v + (row * kv_heads_ + h) * dv;
          if (gated_)
            for (int64_t d = 0; d < dk; ++d) {
              const T factor = std::exp(per_key ? decay[(row * kv_heads_ + h) * dk + d] : decay[row * kv_heads_ + h]);
              for (int64_t m = 0; m < dv; ++m) state[d * dv + m] *= factor;
            }
          std::copy_n(fresh, dv, value);
          if (delta_) {
            for (int64_t d = 0; d < dk; ++d)
              for (int64_t m = 0; m < dv; ++m) value[m] -= state[d * dv + m] * key[d];
            const T strength = beta[one_beta ? row : row * kv_heads_ + h];
            for (int64_t m = 0; m < dv; ++m) value[m] *= strength;
          }
          for (int64_t d = 0; d < dk; ++d)
            for (int64_t m = 0; m < dv; ++m) state[d * dv + m] += key[d] * value[m];
          for (int64_t g = 0; g < share; ++g) {
            const T* query = q + (row * q_heads_ + h * share + g) * dk;
            T* out = y + (row * q_heads_ + h * share + g) * dv;
            std::fill_n(out, dv, T(0));
            for (int64_t d = 0; d < dk; ++d)
              for (int64_t m = 0; m < dv; ++m) out[m] += scale * query[d] * state[d * dv + m];
          }
        }
        if (present) std::copy_n(state, dk * dv, present + i * dk * dv);
      }
    });
    io.store();
  }

  int64_t q_heads_, kv_heads_;
  float scale_;
  bool gated_, delta_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(linear_attention) { r.add({.name = "LinearAttention", .since = 27, .make = make_kernel<LinearAttention>}); }
