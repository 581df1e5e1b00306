#include <cstring>

#include "kernels/byte_image.h"
#include "ops/nn/window.h"
#include "passes/nchwc.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

int32_t small_int(const NodeInfo& info, const char* key, int64_t otherwise = 0) {
  return static_cast<int32_t>(info.attr(key, otherwise));
}

/// QuantizeNhwc(x): QuantizeLinear of a float image [N, C, ...] with one scale to 8-bit integers, channels last.
class QuantizeNhwc final : public Kernel {
 public:
  explicit QuantizeNhwc(const NodeInfo& info)
      : q_{info.attr("scale", 1.0f), small_int(info, "y_zero"), small_int(info, "low"), small_int(info, "high", 255)} {}

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    Shape y{x[0]};
    for (int d = 2; d < x.rank(); ++d) y.push_back(x[d]);
    y.push_back(x[1]);
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    quantize_to_nhwc(q_, x[0], x[1], x.size(2, x.rank()), c.data<float>(0), c.out(0).data, c.pool());
  }

 private:
  ByteQuantization q_;
};

/// QAdd(a, b), QMul(a, b): two quantised tensors of one rank, dequantised, added or multiplied and quantised. Attributes:
/// scales, zero points, bounds.
class QAdd final : public Kernel {
 public:
  explicit QAdd(const NodeInfo& info) {
    sum_.product = info.node().op == "QMul";
    sum_.a_signed = info.in_type(0) == DataType::int8;
    sum_.b_signed = info.in_type(1) == DataType::int8;
    sum_.y_signed = info.out_type(0) == DataType::int8;
    sum_.a_scale = info.attr("a_scale", 1.0f), sum_.b_scale = info.attr("b_scale", 1.0f);
    sum_.y_scale = info.attr("y_scale", 1.0f);
    sum_.a_zero = small_int(info, "x_zero"), sum_.b_zero = small_int(info, "b_zero");
    sum_.y_zero = small_int(info, "y_zero");
    sum_.low = small_int(info, "low"), sum_.high = small_int(info, "high", 255);
  }
  void shapes(ShapeContext& c) const override {
    const Shape &a = c.in(0), &b = c.in(1);
    Shape y = a;
    bool fits = a.rank() == b.rank();
    for (int d = 0; fits && d < a.rank(); ++d) {
      fits = a[d] == b[d] || a[d] == 1 || b[d] == 1;
      y[d] = a[d] == 1 ? b[d] : a[d];
    }
    if (!fits) c.refuse("shapes ", a, " and ", b, " cannot be broadcast");
    if (!(a == b)) c.workspace(static_cast<size_t>(2 * y.back()));
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    ByteSum sum = sum_;
    sum.a = c.in(0).data, sum.b = c.in(1).data, sum.y = c.out(0).data;
    sum.size = c.out(0).size();
    const Shape &a = c.in(0).shape, &b = c.in(1).shape;
    if (a == b || sum.size == 0) return add_bytes(sum, c.pool());
    add_rows(c, sum, a, b);
  }

 private:
  /// Row by row (of the last dim), rows of one element spread.
  static void add_rows(const RunContext& c, ByteSum sum, const Shape& a, const Shape& b) {
    const Shape& y = c.out(0).shape;
    const int last = y.rank() - 1;
    const int64_t n = y[last], rows = y.size(0, last);
    uint8_t* spread = c.workspace_as<uint8_t>();
    const auto row_of = [&](const void* data, const Shape& shape, int64_t row) {
      int64_t at = 0, step = 1;
      for (int d = last - 1; d >= 0; --d) {
        if (shape[d] != 1) at += row % y[d] * step;
        row /= y[d];
        step *= shape[d];
      }
      return static_cast<const uint8_t*>(data) + at * shape[last];
    };
    sum.size = n;
    const void *a_data = sum.a, *b_data = sum.b;
    uint8_t* to = static_cast<uint8_t*>(sum.y);
    for (int64_t row = 0; row < rows; ++row) {
      const uint8_t *pa = row_of(a_data, a, row), *pb = row_of(b_data, b, row);
      if (a[last] != n) std::memset(spread, *pa, static_cast<size_t>(n)), pa = spread;
      if (b[last] != n) std::memset(spread + n, *pb, static_cast<size_t>(n)), pb = spread + n;
      sum.a = pa, sum.b = pb, sum.y = to + row * n;
      add_bytes(sum, c.pool());
    }
  }

  ByteSum sum_;
};

/// QTable(x, table): y = table[x], for any function of one 8-bit integer. The index is x's bit pattern.
class QTable final : public Kernel {
 public:
  explicit QTable(const NodeInfo& info) {
    const Tensor* table = info.constant(1);
    if (!table || table->size() != 256)
      info.refuse(Code::invalid_graph, "the table should be a constant of 256 elements");
    std::memcpy(table_, table->data, 256);
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override {
    const uint8_t* x = static_cast<const uint8_t*>(c.in(0).data);
    uint8_t* y = static_cast<uint8_t*>(c.out(0).data);
    c.pool().parallel_for(c.out(0).size(), 0.4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = table_[x[i]];
    });
  }
  bool reads_constant(int input) const override { return input == 0; }

 private:
  uint8_t table_[256];
};

/// QMaxPoolNhwc(x), QAveragePoolNhwc(x): the pools of ONNX on channels-last images of 8-bit integers with one or two
/// spatial dims. A mean is requantised; attribute scale is the step of x relative to that of y.
template <bool kMax>
class QPoolNhwc final : public Kernel {
 public:
  explicit QPoolNhwc(const NodeInfo& info) : window_(info), kernel_(window_.kernel) {
    x_signed_ = info.in_type(0) == DataType::int8;
    mean_.y_signed = info.out_type(0) == DataType::int8;
    mean_.include_pad = info.attr("count_include_pad", 0) != 0;
    mean_.scale = info.attr("scale", 1.0f);
    mean_.x_zero = small_int(info, "x_zero"), mean_.y_zero = small_int(info, "y_zero");
    mean_.low = small_int(info, "low"), mean_.high = small_int(info, "high", 255);
  }
  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    if (y.rank() != kernel_.rank() + 2) c.refuse("input has shape ", y, "; expected rank ", kernel_.rank() + 2);
    const Window w = slide(window_, c.node(), y, kernel_, 1);
    for (int d = 0; d < w.rank(); ++d) y[1 + d] = w.out[d];
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    const Window w = slide(window_, c.node(), x, kernel_, 1);
    const Shape2 kernel = Shape2::of(w.kernel, 1), stride = Shape2::of(w.stride, 1),
                 dilation = Shape2::of(w.dilation, 1);
    const Shape2 in = Shape2::of(w.in, 1), out = Shape2::of(w.out, 1);
    const Shape2 pad = Shape2::of(w.pad, 0), pad_end = Shape2::of(w.pad_end, 0);
    BytePooling p;
    p.kernel_h = static_cast<int>(kernel.h), p.kernel_w = static_cast<int>(kernel.w);
    p.stride_h = static_cast<int>(stride.h), p.stride_w = static_cast<int>(stride.w);
    p.dilation_h = static_cast<int>(dilation.h), p.dilation_w = static_cast<int>(dilation.w);
    p.planes = x[0];
    p.channels = x.back();
    p.x_signed = x_signed_;
    p.in_h = in.h, p.in_w = in.w, p.out_h = out.h, p.out_w = out.w;
    p.pad_top = pad.h, p.pad_left = pad.w, p.pad_bottom = pad_end.h, p.pad_right = pad_end.w;
    if (kMax)
      max_pool_bytes(p, c.in(0).data, c.out(0).data, c.pool());
    else
      average_pool_bytes(p, mean_, c.in(0).data, c.out(0).data, c.pool());
  }

 private:
  WindowAttributes window_;
  Shape kernel_;
  bool x_signed_;
  ByteMean mean_;
};

/// QGlobalAveragePoolNhwc(x): the mean over the spatial dims of a channels-last image, as [N, C, 1, ...].
class QGlobalAveragePoolNhwc final : public Kernel {
 public:
  explicit QGlobalAveragePoolNhwc(const NodeInfo& info) {
    x_signed_ = info.in_type(0) == DataType::int8;
    mean_.y_signed = info.out_type(0) == DataType::int8;
    mean_.scale = info.attr("scale", 1.0f);
    mean_.x_zero = small_int(info, "x_zero"), mean_.y_zero = small_int(info, "y_zero");
    mean_.low = small_int(info, "low"), mean_.high = small_int(info, "high", 255);
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    Shape y{x[0], x.back()};
    for (int d = 1; d + 1 < x.rank(); ++d) y.push_back(1);
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    BytePooling p;
    p.in_h = 1, p.in_w = x.size(1, x.rank() - 1);
    p.kernel_w = static_cast<int>(p.in_w);
    p.out_h = p.out_w = 1;
    p.planes = x[0];
    p.channels = x.back();
    p.x_signed = x_signed_;
    average_pool_bytes(p, mean_, c.in(0).data, c.out(0).data, c.pool());
  }

 private:
  bool x_signed_;
  ByteMean mean_;
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(byte_image_nhwc) {
  r.add_internal({.name = "QuantizeNhwc", .make = make_kernel<QuantizeNhwc>});
  r.add_internal({.name = "QAdd", .make = make_kernel<QAdd>, .inplace = 3});
  r.add_internal({.name = "QMul", .make = make_kernel<QAdd>, .inplace = 3});
  r.add_internal({.name = "QTable", .make = make_kernel<QTable>, .inplace = 1});
  r.add_internal({.name = "QMaxPoolNhwc", .make = make_kernel<QPoolNhwc<true>>});
  r.add_internal({.name = "QAveragePoolNhwc", .make = make_kernel<QPoolNhwc<false>>});
  r.add_internal({.name = "QGlobalAveragePoolNhwc", .make = make_kernel<QGlobalAveragePoolNhwc>});
}
