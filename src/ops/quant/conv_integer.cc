#include "ops/quant/integer_conv.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Inputs: x, w, x_zero_point, w_zero_point.
class ConvInteger final : public Kernel {
 public:
  explicit ConvInteger(const NodeInfo& info) : conv_(info, {0, 2, 1, 3}) {}
  void shapes(ShapeContext& c) const override {
    size_t bytes;
    Shape y = conv_.shape(c, bytes);
    c.workspace(bytes);
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    int32_t* y = c.out_data<int32_t>(0);
    const int64_t size = conv_.plane_size(c.out(0).shape);
    conv_.run(
        c, c.workspace(), [&](int64_t plane) { return y + plane * size; }, [](int64_t, int64_t, const int32_t*) {});
  }

 private:
  IntegerConv conv_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(conv_integer) { r.add({.name = "ConvInteger", .since = 10, .make = make_kernel<ConvInteger>}); }
