#include <algorithm>
#include <cmath>

#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// GroupNorm and SkipGroupNorm: group normalisation of {N, H, W, C} (channels_last) or {N, C, H, W}, after adding skip
/// and bias, maybe followed by SiLU. Output 1 is the sum.
class GroupNorm final : public Kernel {
 public:
  explicit GroupNorm(const NodeInfo& info)
      : groups_(info.attr("groups", 0)),
        last_(info.attr("channels_last", 1) != 0),
        silu_(info.attr("activation", 0) != 0),
        epsilon_(info.attr("epsilon", 1e-5f)) {
    if (!is_float(info.in_type(0)) || info.in_type(0) == DataType::float64)
      info.refuse(Code::not_implemented, "type ", info.in_type(0));
    if (groups_ < 1) info.refuse(Code::invalid_graph, "groups is ", groups_);
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() < 3) c.refuse("input has shape ", x, "; expected a batch, channels and spatial dims");
    const int64_t channels = x[last_ ? x.rank() - 1 : 1];
    if (channels % groups_ != 0) c.refuse("the ", channels, " channels do not divide into ", groups_, " groups");
    for (int i : {1, 2, 4})
      if (c.has(i) && c.in(i).size() != channels)
        c.refuse("input ", i, " has shape ", c.in(i), "; expected {", channels, "}");
    if (c.has(3) && c.in(3) != x && c.in(3).size() != x[0] * channels)
      c.refuse("skip has shape ", c.in(3), " for input of shape ", x);
    // Sums where no output holds them.
    c.workspace(FloatIo::align(static_cast<size_t>(x.size()) * sizeof(float)) + FloatIo::bytes(c, {x, x}));
    c.out(0, x);
    c.out(1, x);
  }

  void run(const RunContext& c) const override {
    const Shape& shape = c.in(0).shape;
    const int64_t size = c.in(0).size();
    FloatIo io(c, static_cast<size_t>(size) * sizeof(float));
    const float *x = io.in<float>(0), *gamma = io.in<float>(1), *beta = io.in<float>(2), *skip = io.in<float>(3);
    const float* bias = io.in<float>(4);
    float *y = io.out<float>(0), *sum_out = io.out<float>(1);
    const int64_t batch = shape[0], channels = shape[last_ ? shape.rank() - 1 : 1];
    if (size == 0) return;
    const int64_t spatial = size / batch / channels, per_group = channels / groups_;
    const int64_t channel_step = last_ ? 1 : spatial, place_step = last_ ? channels : 1;
    const bool full_skip = skip && c.in(3).shape == shape;
    float* sums = sum_out ? sum_out : c.workspace_as<float>();
    c.pool().parallel_for(
        batch * groups_, 6.0 * static_cast<double>(spatial * per_group), [&](int64_t begin, int64_t end) {
          for (int64_t task = begin; task < end; ++task) {
            const int64_t n = task / groups_, first = task % groups_ * per_group, base = n * channels * spatial;
            auto each = [&](auto&& fn) {
              for (int64_t p = 0; p < spatial; ++p)
                for (int64_t k = first; k < first + per_group; ++k) fn(base + k * channel_step + p * place_step, k);
            };
            double total = 0, squares = 0;
            each([&](int64_t at, int64_t k) {
              float v = x[at];
              if (skip) v += full_skip ? skip[at] : skip[n * channels + k];
              if (bias) v += bias[k];
              sums[at] = v;
              total += v;
            });
            const double count = static_cast<double>(spatial * per_group), mean = total / count;
            each([&](int64_t at, int64_t) { squares += (sums[at] - mean) * (sums[at] - mean); });
            const float centre = static_cast<float>(mean);
            const float inverse = static_cast<float>(1 / std::sqrt(squares / count + static_cast<double>(epsilon_)));
            each([&](int64_t at, int64_t k) {
              const float v = (sums[at] - centre) * inverse * gamma[k] + beta[k];
              y[at] = silu_ ? v / (1 + std::exp(-v)) : v;
            });
          }
        });
    io.store();
  }

 private:
  int64_t groups_;
  bool last_, silu_;
  float epsilon_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(group_norm) {
  r.add({.name = "GroupNorm", .domain = "com.microsoft", .make = make_kernel<GroupNorm>});
  r.add({.name = "SkipGroupNorm", .domain = "com.microsoft", .make = make_kernel<GroupNorm>});
}
