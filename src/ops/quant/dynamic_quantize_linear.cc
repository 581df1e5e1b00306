#include "ops/quant/quant_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Quantises to uint8 with a scale and zero point made from the input's own range (which always takes in zero).
class DynamicQuantizeLinear final : public Kernel {
 public:
  explicit DynamicQuantizeLinear(const NodeInfo& info) {
    if (info.in_type(0) != DataType::float32) info.refuse(Code::not_implemented, "input type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    c.out(0, c.in(0));
    c.out(1, Shape());
    c.out(2, Shape());
  }
  void run(const RunContext& c) const override {
    const float* x = c.data<float>(0);
    const int64_t size = c.in(0).size();
    float low = 0, high = 0;
    for (int64_t i = 0; i < size; ++i) {
      low = std::min(low, x[i]);
      high = std::max(high, x[i]);
    }
    constexpr QuantRange kRange{0, 255};
    const float scale = high == low ? 1.0f : (high - low) / 255.0f;
    const int32_t zero = quantize_one(-low / scale, 0, kRange);
    if (float* y_scale = c.out_data<float>(1)) *y_scale = scale;
    if (uint8_t* y_zero = c.out_data<uint8_t>(2)) *y_zero = static_cast<uint8_t>(zero);
    uint8_t* y = c.out_data<uint8_t>(0);
    if (!y) return;
    c.pool().parallel_for(size, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = static_cast<uint8_t>(quantize_one(x[i] / scale, zero, kRange));
    });
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(dynamic_quantize_linear) {
  r.add({.name = "DynamicQuantizeLinear", .since = 11, .make = make_kernel<DynamicQuantizeLinear>});
}
