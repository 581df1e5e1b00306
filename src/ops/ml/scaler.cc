#include "ops/dispatch.h"
#include "ops/ml/ml_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Scaler: (x - offset) * scale, one of each for all features or one a feature.
class Scaler final : public Kernel {
 public:
  explicit Scaler(const NodeInfo& info) : offset_(info.floats("offset")), scale_(info.floats("scale")) {
    if (!is_ml_number(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    if (offset_.size() != scale_.size() || scale_.empty())
      info.refuse(Code::invalid_graph, "offset has ", offset_.size(), " entries and scale ", scale_.size());
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    const int64_t features = static_cast<int64_t>(scale_.size());
    if (features != 1 && (x.rank() == 0 || x.back() != features))
      c.refuse("scale has ", features, " entries for input of shape ", x);
    c.out(0, x);
  }
  void run(const RunContext& c) const override {
    float* y = c.out_data<float>(0);
    const int64_t n = static_cast<int64_t>(scale_.size());
    dispatch(c.in(0).type, Types<float, double, int64_t, int32_t>{}, [&]<class T>() {
      const T* x = c.data<T>(0);
      c.pool().parallel_for(c.in(0).size(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin, k = begin % n; i < end; ++i) {
          y[i] = (static_cast<float>(x[i]) - offset_[k]) * scale_[k];
          if (++k == n) k = 0;
        }
      });
    });
  }

 private:
  std::vector<float> offset_, scale_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(scaler) { r.add({.name = "Scaler", .domain = "ai.onnx.ml", .make = make_kernel<Scaler>}); }
