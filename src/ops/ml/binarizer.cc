#include "ops/dispatch.h"
#include "ops/ml/ml_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Binarizer: 1 where x is greater than the threshold, else 0 (NaN: 0).
class Binarizer final : public Kernel {
 public:
  explicit Binarizer(const NodeInfo& info) : threshold_(info.attr("threshold", 0.0f)) {
    if (!is_ml_number(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override {
    dispatch(c.in(0).type, Types<float, double, int64_t, int32_t>{}, [&]<class T>() {
      const T* x = c.data<T>(0);
      T* y = c.out_data<T>(0);
      // Integers are compared as double: the threshold need not be whole.
      using C = std::conditional_t<std::is_same_v<T, float>, float, double>;
      const C threshold = static_cast<C>(threshold_);
      c.pool().parallel_for(c.in(0).size(), 0.5, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = static_cast<T>(static_cast<C>(x[i]) > threshold);
      });
    });
  }

 private:
  float threshold_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(binarizer) {
  r.add({.name = "Binarizer", .domain = "ai.onnx.ml", .make = make_kernel<Binarizer>, .inplace = 1});
}
