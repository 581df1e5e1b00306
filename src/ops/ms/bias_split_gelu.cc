#include <algorithm>

#include "kernels/activation.h"
#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// BiasSplitGelu: with the bias added, the left half of every row times gelu of the right half.
class BiasSplitGelu final : public Kernel {
 public:
  explicit BiasSplitGelu(const NodeInfo& info) {
    if (!is_float(info.in_type(0)) || info.in_type(0) == DataType::float64)
      info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    if (y.rank() == 0 || y.back() % 2 != 0 || c.in(1).size() != y.back())
      c.refuse("input ", y, " and bias ", c.in(1), ": expected an even last dim and a bias of its size");
    y[y.rank() - 1] /= 2;
    c.workspace(FloatIo::bytes(c, {y}));
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    FloatIo io(c, 0);
    const float *x = io.in<float>(0), *bias = io.in<float>(1);
    float* y = io.out<float>(0);
    const int64_t n = c.in(1).size() / 2, rows = n > 0 ? c.in(0).size() / (2 * n) : 0;
    c.pool().parallel_for(rows, 5.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* in = x + row * 2 * n;
        float* out = y + row * n;
        for (int64_t i = 0; i < n; ++i) out[i] = in[n + i] + bias[n + i];
        activate(Activation::gelu(), out, out, n);
        for (int64_t i = 0; i < n; ++i) out[i] *= in[i] + bias[i];
      }
    });
    io.store();
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(bias_split_gelu) {
  r.add({.name = "BiasSplitGelu", .domain = "com.microsoft", .make = make_kernel<BiasSplitGelu>});
}
