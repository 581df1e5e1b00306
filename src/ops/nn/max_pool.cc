#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/dispatch.h"
#include "ops/float_io.h"
#include "ops/nn/window.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// MaxPool: the largest element of every window, NaN if there is one. Output 1 is its position in the whole input.
class MaxPool final : public Kernel {
 public:
  explicit MaxPool(const NodeInfo& info) : window_(info), column_major_(info.attr("storage_order", 0) != 0) {
    DataType type = info.in_type(0);
    if (!is_float(type) && type != DataType::int8 && type != DataType::uint8)
      info.refuse(Code::not_implemented, "type ", type);
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    Window window = slide(window_, c.node(), x, kernel_of(window_, c.node(), x));
    Shape y{x[0], x[1]};
    for (int64_t d : window.out) y.push_back(d);
    c.workspace(FloatIo::bytes(c, {y}));
    c.out(1, y);
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    switch (c.in(0).type) {
      case DataType::float64:
        return floats<double>(c);
      case DataType::int8:
        return compute(c, c.data<int8_t>(0), c.out_data<int8_t>(0));
      case DataType::uint8:
        return compute(c, c.data<uint8_t>(0), c.out_data<uint8_t>(0));
      default:
        return floats<float>(c);
    }
  }

 private:
  template <class T>
  void floats(const RunContext& c) const {
    FloatIo io(c, 0);
    const T* x = io.in<T>(0);
    compute(c, x, io.out<T>(0));
    io.store();
  }

  template <class T>
  void compute(const RunContext& c, const T* x, T* y) const {
    const Shape& xs = c.in(0).shape;
    const Window w = slide(window_, c.node(), xs, kernel_of(window_, c.node(), xs));
    int64_t* indices = c.out_data<int64_t>(1);
    const int64_t in_size = w.in_size(), out_size = w.out_size();
    double cost = (indices ? 2.0 : 0.6) * static_cast<double>(out_size * w.kernel_size());
    c.pool().parallel_for(xs[0] * xs[1], cost, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const T* in = x + plane * in_size;
        T* out = y + plane * out_size;
        if (indices)
          with_indices(w, in, out, plane * in_size, indices + plane * out_size);
        else
          values_only(w, in, out);
      }
    });
  }

  template <class T>
  static constexpr T lowest() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  /// Not smaller-or-equal: true for a larger value and for a NaN, and never again after a NaN.
  template <class T>
  static bool beats(T value, T best) {
    return !(value <= best) && best == best;
  }

  template <class T>
  void values_only(const Window& w, const T* in, T* out) const {
    const int last = w.rank() - 1;
    const int64_t stride = w.stride[last], out_w = w.out[last], in_w = w.in[last];
    std::fill_n(out, w.out_size(), lowest<T>());
    for_each_row(w, [&](int64_t o, int64_t i, int64_t) {
      for (int64_t kw = 0; kw < w.kernel[last]; ++kw) {
        int64_t first, until;
        w.valid(last, kw, first, until);
        const T* from = in + i * in_w + kw * w.dilation[last] - w.pad[last];
        T* to = out + o * out_w;
        for (int64_t j = first; j < until; ++j) to[j] = beats(from[j * stride], to[j]) ? from[j * stride] : to[j];
      }
    });
  }

  template <class T>
  void with_indices(const Window& w, const T* in, T* out, int64_t offset, int64_t* index) const {
    const int last = w.rank() - 1;
    const int64_t stride = w.stride[last], out_w = w.out[last], in_w = w.in[last];
    const int64_t size = w.out_size();
    std::fill_n(out, size, lowest<T>());
    std::fill_n(index, size, int64_t{-1});
    for_each_row(w, [&](int64_t o, int64_t i, int64_t) {
      for (int64_t kw = 0; kw < w.kernel[last]; ++kw) {
        int64_t first, until;
        w.valid(last, kw, first, until);
        const int64_t start = i * in_w + kw * w.dilation[last] - w.pad[last];
        for (int64_t j = first; j < until; ++j) {
          int64_t from = start + j * stride, to = o * out_w + j;
          if (index[to] < 0 || beats(in[from], out[to])) out[to] = in[from], index[to] = from;
        }
      }
    });
    for (int64_t j = 0; j < size; ++j)
      if (index[j] >= 0) index[j] = offset + (column_major_ ? column_order(w, index[j]) : index[j]);
  }

  /// The position in a plane counted with the first spatial dim fastest.
  static int64_t column_order(const Window& w, int64_t flat) {
    int64_t result = 0;
    Shape at(w.rank(), 0);
    for (int d = w.rank() - 1; d >= 0; --d) at[d] = flat % w.in[d], flat /= w.in[d];
    for (int d = w.rank() - 1; d >= 0; --d) result = result * w.in[d] + at[d];
    return result;
  }

  WindowAttributes window_;
  bool column_major_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(max_pool) { r.add({.name = "MaxPool", .make = make_kernel<MaxPool>}); }
