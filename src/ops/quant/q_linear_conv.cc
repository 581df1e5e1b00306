#include "ops/quant/integer_conv.h"
#include "ops/quant/quant_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Inputs: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias. Scales and zero points of w are per tensor or
/// per output channel; the int32 bias has the scale x_scale * w_scale.
class QLinearConv final : public Kernel {
 public:
  explicit QLinearConv(const NodeInfo& info) : conv_(info, {0, 2, 3, 5}) {
    if (info.out_type(0) != DataType::uint8 && info.out_type(0) != DataType::int8)
      info.refuse(Code::not_implemented, "output type ", info.out_type(0));
    quant_range(info.out_type(0), range_);
  }
  void shapes(ShapeContext& c) const override {
    size_t bytes;
    Shape y = conv_.shape(c, bytes);
    for (int i : {1, 6, 7})
      if (c.has(i) && c.in(i).size() != 1) c.refuse("input ", i, " has shape ", c.in(i), ", expected a scalar");
    if (c.in(4).size() != 1 && c.in(4).size() != y[1])
      c.refuse("w_scale has shape ", c.in(4), ", expected a scalar or {", y[1], "}");
    if (c.has(8) && c.in(8).size() != y[1]) c.refuse("bias has shape ", c.in(8), ", expected {", y[1], "}");
    c.workspace(bytes + type_bytes(DataType::int32, y.size()));
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    Tensor& y = c.out(0);
    const int64_t size = conv_.plane_size(y.shape), scales = c.in(4).size();
    int32_t* sums = c.workspace_as<int32_t>();
    const float in_scale = scalar_scale(c.in(1)), out_scale = scalar_scale(c.in(6));
    const int32_t zero = scalar_zero(c.has(7) ? &c.in(7) : nullptr);
    const int32_t* bias = c.data<int32_t>(8);
    conv_.run(
        c, sums + y.size(), [&](int64_t plane) { return sums + plane * size; },
        [&](int64_t channel, int64_t plane, const int32_t* from) {
          const float factor = in_scale * c.data<float>(4)[scales == 1 ? 0 : channel] / out_scale;
          const uint32_t shift = static_cast<uint32_t>(bias ? bias[channel] : 0);
          uint8_t* to = y.as<uint8_t>() + plane * size;
          for (int64_t i = 0; i < size; ++i) {
            const int32_t sum = static_cast<int32_t>(static_cast<uint32_t>(from[i]) + shift);
            to[i] = static_cast<uint8_t>(quantize_one(static_cast<float>(sum) * factor, zero, range_));
          }
        });
  }

 private:
  IntegerConv conv_;
  QuantRange range_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(q_linear_conv) { r.add({.name = "QLinearConv", .since = 10, .make = make_kernel<QLinearConv>}); }
