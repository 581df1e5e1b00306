#include <cmath>

#include "ops/float_io.h"
#include "ops/nn/rows.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// BatchNormalization: (x - mean) / sqrt(var + epsilon) * scale + bias, per channel. In training mode mean and variance
/// are those of the batch, and the running ones are updated.
class BatchNormalization final : public FloatKernel<BatchNormalization> {
 public:
  explicit BatchNormalization(const NodeInfo& info)
      : FloatKernel(info),
        epsilon_(info.attr("epsilon", 1e-5f)),
        momentum_(info.attr("momentum", 0.9f)),
        spatial_(info.attr("spatial", 1) != 0) {
    training_ = info.opset() >= 14 && info.attr("training_mode", 0) != 0;
    if (!training_)
      for (int o = 1; o < info.outputs(); ++o)
        if (info.wants(o)) info.refuse(Code::not_implemented, "statistics as outputs without training_mode=1");
    if (info.opset() < 7 && !info.attr("is_test", 0))
      info.refuse(Code::not_implemented, "training (is_test=0) before opset 14");
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() < 1) c.refuse("input is a scalar; expected {N, C, spatial dims...}");
    const int64_t channels = channels_of(x);
    for (int i = 1; i < 5; ++i)
      if (c.in(i).size() != channels)
        c.refuse("input ", i, " has shape ", c.in(i), "; expected ", channels, " elements for input ", x);
    size_t own = training_ ? FloatIo::align(2 * sizeof(double) * static_cast<size_t>(channels)) : 0;
    c.workspace(own + FloatIo::bytes(c, {x, c.in(3), c.in(4)}));
    c.out(0, x);
    c.out(1, c.in(3));
    c.out(2, c.in(4));
  }

 private:
  friend FloatKernel;
  int64_t channels_of(const Shape& x) const {
    if (!spatial_) return x.size(1, x.rank());
    return x.rank() > 1 ? x[1] : 1;
  }

  template <class T>
  void compute(const RunContext& c) const {
    const Shape& shape = c.in(0).shape;
    const int64_t channels = channels_of(shape);
    FloatIo io(c, training_ ? 2 * sizeof(double) * static_cast<size_t>(channels) : 0);
    const T *x = io.in<T>(0), *scale = io.in<T>(1), *bias = io.in<T>(2), *mean = io.in<T>(3), *var = io.in<T>(4);
    T *y = io.out<T>(0), *running_mean = io.out<T>(1), *running_var = io.out<T>(2);
    const int64_t batch = shape[0], size = spatial_ && shape.rank() > 2 ? shape.size(2, shape.rank()) : 1;
    if (training_) {
      T* batch_mean = c.workspace_as<T>();
      T* batch_var = batch_mean + channels;
      statistics(c, x, batch, channels, size, batch_mean, batch_var);
      const T keep = static_cast<T>(momentum_), take = static_cast<T>(1 - momentum_);
      for (int64_t i = 0; i < channels; ++i) {
        if (running_mean) running_mean[i] = mean[i] * keep + batch_mean[i] * take;
        if (running_var) running_var[i] = var[i] * keep + batch_var[i] * take;
      }
      mean = batch_mean;
      var = batch_var;
    }
    c.pool().parallel_for(batch * channels, 0.5 * static_cast<double>(size) + 4, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t i = plane % channels;
        const T factor = scale[i] / std::sqrt(var[i] + static_cast<T>(epsilon_)), centre = mean[i], shift = bias[i];
        const T* in = x + plane * size;
        T* out = y + plane * size;
        for (int64_t j = 0; j < size; ++j) out[j] = (in[j] - centre) * factor + shift;
      }
    });
    io.store();
  }

  template <class T>
  static void statistics(const RunContext& c, const T* x, int64_t batch, int64_t channels, int64_t size, T* mean,
                         T* var) {
    const T count = static_cast<T>(batch * size);
    c.pool().parallel_for(channels, 2.0 * static_cast<double>(batch * size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T sum = 0, squares = 0;
        for (int64_t n = 0; n < batch; ++n) sum += row_sum(x + (n * channels + i) * size, size);
        mean[i] = sum / count;
        for (int64_t n = 0; n < batch; ++n) squares += row_square_sum(x + (n * channels + i) * size, mean[i], size);
        var[i] = squares / count;
      }
    });
  }

  float epsilon_, momentum_;
  bool spatial_, training_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(batch_normalization) { r.add({.name = "BatchNormalization", .make = make_kernel<BatchNormalization>}); }
