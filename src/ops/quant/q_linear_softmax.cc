#include <algorithm>
#include <cmath>

#include "ops/quant/byte_table.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// com.microsoft QLinearSoftmax: X, x_scale, x_zero, y_scale, y_zero. The attribute `opset` says which Softmax is meant:
/// before 13 the dims from the axis on are one.
class QLinearSoftmax final : public Kernel {
 public:
  explicit QLinearSoftmax(const NodeInfo& info) : axis_(info.attr("axis", -1)), flatten_(info.attr("opset", 13) < 13) {
    check_byte_type(info, 0);
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    for (int i : {1, 2, 3, 4}) check_scalar(c, i);
    if (axis_ < -x.rank() || axis_ >= x.rank()) c.refuse("axis ", axis_, " is out of range for input of shape ", x);
    c.out(0, x);
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    const ByteScale from = byte_scale(c, x.type, 1, 2), to = byte_scale(c, x.type, 3, 4);
    const int rank = x.shape.rank(), at = static_cast<int>(axis_ < 0 ? axis_ + rank : axis_);
    const int64_t length = flatten_ ? x.shape.size(at, rank) : x.shape[at];
    const int64_t inner = flatten_ ? 1 : x.shape.size(at + 1, rank);
    if (x.size() == 0) return;
    // exp of the distance below the largest code of a line.
    float exps[256];
    for (int i = 0; i < 256; ++i) exps[i] = std::exp(-static_cast<float>(i) * from.scale);
    const uint8_t* codes = x.as<uint8_t>();
    uint8_t* out = c.out_data<uint8_t>(0);
    c.pool().parallel_for(x.size() / length, 4.0 * static_cast<double>(length), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t start = line / inner * length * inner + line % inner;
        int32_t top = -128;
        for (int64_t k = 0; k < length; ++k) top = std::max(top, byte_value(x.type, codes[start + k * inner]));
        double sum = 0;
        for (int64_t k = 0; k < length; ++k) sum += exps[top - byte_value(x.type, codes[start + k * inner])];
        for (int64_t k = 0; k < length; ++k) {
          const float e = exps[top - byte_value(x.type, codes[start + k * inner])];
          out[start + k * inner] = to.code(e / static_cast<float>(sum));
        }
      }
    });
  }

 private:
  int64_t axis_;
  bool flatten_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(q_linear_softmax) {
  r.add({.name = "QLinearSoftmax", .domain = "com.microsoft", .make = make_kernel<QLinearSoftmax>, .inplace = 1});
}
