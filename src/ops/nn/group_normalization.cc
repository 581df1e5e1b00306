#include <cmath>

#include "ops/float_io.h"
#include "ops/nn/rows.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// GroupNormalization and InstanceNormalization (a group for every channel): mean 0 and variance 1 over each group of
/// channels of each sample, then scale and bias.
class GroupNormalization final : public FloatKernel<GroupNormalization> {
 public:
  explicit GroupNormalization(const NodeInfo& info)
      : FloatKernel(info), epsilon_(info.attr("epsilon", 1e-5f)), instance_(info.node().op == "InstanceNormalization") {
    groups_ = instance_ ? 0 : info.attr("num_groups", 0);
    if (!instance_ && groups_ < 1) info.refuse(Code::invalid_graph, "num_groups is ", groups_);
    // Opset 18 has one scale a group, opset 21 one a channel.
    per_group_ = !instance_ && info.opset() < 21;
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() < 2) c.refuse("input has shape ", x, "; expected {N, C, spatial dims...}");
    if (!instance_ && x[1] % groups_ != 0) c.refuse("the ", x[1], " channels do not divide into ", groups_, " groups");
    int64_t parameters = per_group_ ? groups_ : x[1];
    for (int i = 1; i < 3; ++i)
      if (c.in(i).size() != parameters) c.refuse("input ", i, " has shape ", c.in(i), "; expected {", parameters, "}");
    c.workspace(FloatIo::bytes(c, {x}));
    c.out(0, x);
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *x = io.in<T>(0), *scale = io.in<T>(1), *bias = io.in<T>(2);
    T* y = io.out<T>(0);
    const Shape& shape = c.in(0).shape;
    const int64_t groups = instance_ ? shape[1] : groups_;
    if (groups == 0) return;
    const int64_t channels = shape[1] / groups, size = shape.size(2, shape.rank()), n = channels * size;
    c.pool().parallel_for(shape[0] * groups, 2.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* in = x + i * n;
        T* out = y + i * n;
        const int64_t group = i % groups;
        const T mean = row_sum(in, n) / static_cast<T>(n);
        const T variance = row_square_sum(in, mean, n) / static_cast<T>(n);
        const T inverse = T(1) / std::sqrt(variance + static_cast<T>(epsilon_));
        for (int64_t k = 0; k < channels; ++k) {
          const int64_t p = per_group_ ? group : group * channels + k;
          const T factor = inverse * scale[p], shift = bias[p];
          for (int64_t j = k * size; j < (k + 1) * size; ++j) out[j] = (in[j] - mean) * factor + shift;
        }
      }
    });
    io.store();
  }

  float epsilon_;
  bool instance_, per_group_;
  int64_t groups_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(group_normalization) {
  r.add({.name = "GroupNormalization", .since = 18, .make = make_kernel<GroupNormalization>});
  r.add({.name = "InstanceNormalization", .make = make_kernel<GroupNormalization>});
}
