#include "ops/nn/window.h"
#include "ops/quant/byte_table.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// com.microsoft QLinearAveragePool: X, x_scale, x_zero, y_scale, y_zero. Padding counts as the zero point.
class QLinearAveragePool final : public Kernel {
 public:
  explicit QLinearAveragePool(const NodeInfo& info)
      : window_(info), include_pad_(info.attr("count_include_pad", 0) != 0) {
    check_byte_type(info, 0);
    if (info.attr("channels_last", 0)) info.refuse(Code::not_implemented, "channels_last = 1");
  }
  void shapes(ShapeContext& c) const override {
    for (int i : {1, 2, 3, 4}) check_scalar(c, i);
    const Shape& x = c.in(0);
    Window window = slide(window_, c.node(), x, kernel_of(window_, c.node(), x));
    Shape y{x[0], x[1]};
    for (int64_t d : window.out) y.push_back(d);
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    const Window w = slide(window_, c.node(), x.shape, kernel_of(window_, c.node(), x.shape));
    const ByteScale from = byte_scale(c, x.type, 1, 2), to = byte_scale(c, x.type, 3, 4);
    const int64_t in_size = w.in_size(), out_size = w.out_size();
    const double cost = 3.0 * static_cast<double>(out_size * w.kernel_size());
    c.pool().parallel_for(x.shape[0] * x.shape[1], cost, [&](int64_t begin, int64_t end) {
      Shape at(w.rank(), 0), tap(w.rank(), 0);
      for (int64_t plane = begin; plane < end; ++plane)
        for (int64_t o = 0; o < out_size; ++o) {
          int64_t cells = 0;
          const int64_t sum = add(w, x.type, x.as<uint8_t>() + plane * in_size, from.zero, at, tap, cells);
          const float mean = cells ? static_cast<float>(sum) * from.scale / static_cast<float>(cells) : 0.0f;
          c.out_data<uint8_t>(0)[plane * out_size + o] = to.code(mean);
          step(at, w.out);
        }
    });
  }

 private:
  static void step(Shape& index, const Shape& dims) {
    for (int d = dims.rank() - 1; d >= 0 && ++index[d] == dims[d]; --d) index[d] = 0;
  }

  int64_t add(const Window& w, DataType type, const uint8_t* x, int32_t zero, const Shape& at, Shape& tap,
              int64_t& cells) const {
    int64_t sum = 0;
    for (int64_t k = 0; k < w.kernel_size(); ++k) {
      bool inside = true, counted = true;
      int64_t offset = 0;
      for (int d = 0; d < w.rank(); ++d) {
        const int64_t i = at[d] * w.stride[d] + tap[d] * w.dilation[d] - w.pad[d];
        inside = inside && i >= 0 && i < w.in[d];
        counted = counted && i < w.in[d] + w.pad_end[d];
        offset = offset * w.in[d] + i;
      }
      if (inside) sum += byte_value(type, x[offset]) - zero;
      cells += include_pad_ ? counted : inside;
      step(tap, w.kernel);
    }
    return sum;
  }

  WindowAttributes window_;
  bool include_pad_;
};

/// com.microsoft QLinearGlobalAveragePool, in either layout.
class QLinearGlobalAveragePool final : public Kernel {
 public:
  explicit QLinearGlobalAveragePool(const NodeInfo& info) : channels_last_(info.attr("channels_last", 0) != 0) {
    check_byte_type(info, 0);
  }
  void shapes(ShapeContext& c) const override {
    for (int i : {1, 2, 3, 4}) check_scalar(c, i);
    Shape y = c.in(0);
    if (y.rank() < 3) c.refuse("input of shape ", y, ", expected rank 3 or more");
    for (int d = 2; d < y.rank(); ++d) y[channels_last_ ? d - 1 : d] = 1;
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    const int rank = x.shape.rank();
    const ByteScale from = byte_scale(c, x.type, 1, 2), to = byte_scale(c, x.type, 3, 4);
    const int64_t channels = x.shape[channels_last_ ? rank - 1 : 1];
    const int64_t size = channels_last_ ? x.shape.size(1, rank - 1) : x.shape.size(2, rank);
    const int64_t stride = channels_last_ ? channels : 1;
    uint8_t* y = c.out_data<uint8_t>(0);
    c.pool().parallel_for(x.shape[0] * channels, static_cast<double>(size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t n = i / channels, channel = i % channels;
        const uint8_t* in = x.as<uint8_t>() + (n * channels * size) + channel * (channels_last_ ? 1 : size);
        int64_t sum = 0;
        for (int64_t k = 0; k < size; ++k) sum += byte_value(x.type, in[k * stride]) - from.zero;
        y[i] = to.code(static_cast<float>(sum) * from.scale / static_cast<float>(size));
      }
    });
  }

 private:
  bool channels_last_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(q_linear_pool) {
  r.add({.name = "QLinearAveragePool", .domain = "com.microsoft", .make = make_kernel<QLinearAveragePool>});
  r.add({.name = "QLinearGlobalAveragePool", .domain = "com.microsoft", .make = make_kernel<QLinearGlobalAveragePool>});
}
