#include <cmath>

#include "ops/quant/byte_table.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// com.microsoft QLinearSigmoid and QLinearLeakyRelu: X, x_scale, x_zero, y_scale, y_zero; by a table of all codes.
class QLinearUnary final : public Kernel {
 public:
  explicit QLinearUnary(const NodeInfo& info)
      : sigmoid_(info.node().op == "QLinearSigmoid"), alpha_(info.attr("alpha", 0.01f)) {
    check_byte_type(info, 0);
  }
  void shapes(ShapeContext& c) const override {
    for (int i : {1, 2, 3, 4}) check_scalar(c, i);
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    const CodeTable table(byte_scale(c, x.type, 1, 2), byte_scale(c, x.type, 3, 4), [&](float value) {
      if (sigmoid_) return 1.0f / (1.0f + std::exp(-value));
      return value < 0 ? alpha_ * value : value;
    });
    const uint8_t* from = x.as<uint8_t>();
    uint8_t* to = c.out_data<uint8_t>(0);
    c.pool().parallel_for(x.size(), 0.7, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = table.code[from[i]];
    });
  }

 private:
  bool sigmoid_;
  float alpha_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(q_linear_unary) {
  for (const char* name : {"QLinearSigmoid", "QLinearLeakyRelu"})
    r.add({.name = name, .domain = "com.microsoft", .make = make_kernel<QLinearUnary>, .inplace = 1});
}
