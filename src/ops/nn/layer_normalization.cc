#include <cmath>

#include "ops/float_io.h"
#include "ops/nn/rows.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// LayerNormalization, RMSNormalization and onnxruntime's SimplifiedLayerNormalization: every row (the dims from axis
/// on) is brought to mean 0 and variance 1 (RMS: root mean square 1), then scaled and shifted.
class LayerNorm final : public FloatKernel<LayerNorm> {
 public:
  explicit LayerNorm(const NodeInfo& info)
      : FloatKernel(info),
        axis_(info.attr("axis", -1)),
        epsilon_(info.attr("epsilon", 1e-5f)),
        centre_(info.node().op == "LayerNormalization") {}

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    const int axis = resolve(x);
    if (axis < 0) c.refuse("axis ", axis_, " is out of range for input of shape ", x);
    for (int i = 1; i < 3; ++i)
      if (c.has(i)) check_broadcast(c, c.in(i), x);
    Shape rows = x;
    for (int d = axis; d < x.rank(); ++d) rows[d] = 1;
    c.workspace(FloatIo::bytes(c, {x, rows, rows}));
    c.out(0, x);
    c.out(1, rows);
    c.out(2, std::move(rows));
  }

 private:
  friend FloatKernel;
  int resolve(const Shape& x) const {
    int64_t axis = axis_ < 0 ? axis_ + x.rank() : axis_;
    return axis < 0 || axis >= x.rank() ? -1 : static_cast<int>(axis);
  }

  static void check_broadcast(const ShapeContext& c, const Shape& p, const Shape& x) {
    bool fits = p.rank() <= x.rank();
    for (int d = 1; fits && d <= p.rank(); ++d) {
      int64_t dim = p[p.rank() - d];
      fits = dim == 1 || dim == x[x.rank() - d];
    }
    if (!fits) c.refuse("scale or bias of shape ", p, " does not broadcast to the input's ", x);
  }

  /// A scale or bias: its elements for any row.
  template <class T>
  struct Parameter {
    enum class Kind { none, scalar, row, any } kind = Kind::none;
    const T* data;
    Shape shape, x;

    Parameter(const T* elements, const Shape* p, const Shape& x_shape, int axis) : data(elements) {
      if (!p) return;  // absent
      bool is_row = p->rank() >= x_shape.rank() - axis;
      for (int d = 1; d <= p->rank(); ++d)
        is_row = is_row && (*p)[p->rank() - d] == (d <= x_shape.rank() - axis ? x_shape[x_shape.rank() - d] : 1);
      kind = is_row ? Kind::row : p->size() == 1 ? Kind::scalar : Kind::any;
      if (kind == Kind::any) shape = *p, x = x_shape;
    }
    T at(int64_t flat) const {
      int64_t index = 0, step = 1;
      for (int d = 1; d <= shape.rank(); ++d) {
        int64_t dim = x[x.rank() - d], own = shape[shape.rank() - d];
        if (own > 1) index += flat % dim * step;
        step *= own;
        flat /= dim;
      }
      return data[index];
    }
    void apply(T* y, int64_t row, int64_t n, bool multiply) const {
      auto each = [&](auto&& value) {
        if (multiply)
          for (int64_t i = 0; i < n; ++i) y[i] *= value(i);
        else
          for (int64_t i = 0; i < n; ++i) y[i] += value(i);
      };
      if (kind == Kind::row) each([&](int64_t i) { return data[i]; });
      if (kind == Kind::scalar) each([&](int64_t) { return data[0]; });
      if (kind == Kind::any) each([&](int64_t i) { return at(row * n + i); });
    }
  };

  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *x = io.in<T>(0), *scale_data = io.in<T>(1), *bias_data = io.in<T>(2);
    T* y = io.out<T>(0);
    // Simplified and RMS normalisation have no mean; their second output is the inverse deviation.
    T* mean_out = centre_ ? io.out<T>(1) : nullptr;
    T* deviation_out = io.out<T>(centre_ ? 2 : 1);
    const Shape& shape = c.in(0).shape;
    const int axis = resolve(shape);
    const int64_t rows = shape.size(0, axis), n = shape.size(axis, shape.rank());
    const Parameter<T> scale(scale_data, c.has(1) ? &c.in(1).shape : nullptr, shape, axis);
    const Parameter<T> bias(bias_data, c.has(2) ? &c.in(2).shape : nullptr, shape, axis);
    c.pool().parallel_for(rows, 2.0 * static_cast<double>(n) + 10, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* in = x + row * n;
        T* out = y + row * n;
        const T mean = centre_ ? row_sum(in, n) / static_cast<T>(n) : T(0);
        const T variance = row_square_sum(in, mean, n) / static_cast<T>(n);
        const T inverse = T(1) / std::sqrt(variance + static_cast<T>(epsilon_));
        for (int64_t i = 0; i < n; ++i) out[i] = (in[i] - mean) * inverse;
        scale.apply(out, row, n, true);
        bias.apply(out, row, n, false);
        if (mean_out) mean_out[row] = mean;
        if (deviation_out) deviation_out[row] = inverse;
      }
    });
    io.store();
  }

  int64_t axis_;
  float epsilon_;
  bool centre_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(layer_normalization) {
  for (const char* name : {"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"})
    r.add({.name = name, .make = make_kernel<LayerNorm>});
}
