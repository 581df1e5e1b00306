#include <algorithm>
#include <cmath>

#include "ops/broadcast.h"
#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// BiasAdd: x + bias (along the last dim) + skip.
class BiasAdd final : public Kernel {
 public:
  explicit BiasAdd(const NodeInfo& info) {
    const DataType type = info.in_type(0);
    if (!is_float(type) || type == DataType::float64) info.refuse(Code::not_implemented, "type ", type);
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() == 0 || c.in(1).size() != x.back() || c.in(2) != x)
      c.refuse("input ", x, ", bias ", c.in(1), " and skip ", c.in(2), " do not fit");
    c.workspace(FloatIo::bytes(c, {x}));
    c.out(0, x);
  }
  void run(const RunContext& c) const override {
    FloatIo io(c, 0);
    const float *x = io.in<float>(0), *bias = io.in<float>(1), *skip = io.in<float>(2);
    float* y = io.out<float>(0);
    const int64_t n = c.in(1).size(), rows = n > 0 ? c.in(0).size() / n : 0;
    c.pool().parallel_for(rows, static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * n; at < end * n; at += n)
        for (int64_t i = 0; i < n; ++i) y[at + i] = x[at + i] + bias[i] + skip[at + i];
    });
    io.store();
  }
};

/// BiasSoftmax: softmax over the dims from axis on, of data + bias. The bias lacks the dims that it broadcasts over:
/// those between (is_inner_broadcast) or before.
class BiasSoftmax final : public FloatKernel<BiasSoftmax> {
 public:
  explicit BiasSoftmax(const NodeInfo& info) : FloatKernel(info), axis_(info.attr("axis", 1)) {}
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (axis_ < -x.rank() || axis_ >= x.rank()) c.refuse("axis ", axis_, " is out of range for input of shape ", x);
    if (!broadcasts_to(c.in(1), x)) c.refuse("bias of shape ", c.in(1), " does not broadcast to ", x);
    c.workspace(FloatIo::bytes(c, {x}));
    c.out(0, x);
  }

 private:
  friend FloatKernel;
  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *x = io.in<T>(0), *bias = io.in<T>(1);
    T* y = io.out<T>(0);
    const Shape& shape = c.in(0).shape;
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + shape.rank() : axis_);
    const int64_t n = shape.size(axis, shape.rank()), rows = shape.size(0, axis);
    const Broadcast<1> addend(shape, {&c.in(1).shape});
    c.pool().parallel_for(rows, 8.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      const int step = addend.step(0);
      addend.walk(begin * n, end * n, [&](int64_t at, const int64_t* in, int64_t count) {
        for (int64_t i = 0; i < count; ++i) y[at + i] = x[at + i] + bias[in[0] + i * step];
      });
      for (T* row = y + begin * n; n > 0 && row < y + end * n; row += n) {
        const T best = *std::max_element(row, row + n);
        T sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += row[i] = std::exp(row[i] - best);
        for (int64_t i = 0; i < n; ++i) row[i] /= sum;
      }
    });
    io.store();
  }

  int64_t axis_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(bias_add) {
  r.add({.name = "BiasAdd", .domain = "com.microsoft", .make = make_kernel<BiasAdd>});
  r.add({.name = "BiasSoftmax", .domain = "com.microsoft", .make = make_kernel<BiasSoftmax>});
}
