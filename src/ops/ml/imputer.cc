#include "ops/dispatch.h"
#include "ops/ml/ml_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Imputer: elements equal to the replaced value (NaN equals NaN) become the imputed value, one for all features or one
/// a feature.
class Imputer final : public Kernel {
 public:
  explicit Imputer(const NodeInfo& info) {
    if (!is_ml_number(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    const bool floats = is_float(info.in_type(0));
    if (floats) {
      for (float v : info.floats("imputed_value_floats")) imputed_.push_back(v);
      replaced_ = info.attr("replaced_value_float", 0.0f);
    } else {
      imputed_ints_ = info.ints("imputed_value_int64s");
      replaced_int_ = info.attr("replaced_value_int64", 0);
    }
    if (imputed_.empty() && imputed_ints_.empty())
      info.refuse(Code::invalid_graph, floats ? "imputed_value_floats" : "imputed_value_int64s", " is missing");
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    const int64_t n = static_cast<int64_t>(imputed_.size() + imputed_ints_.size());
    if (n != 1 && (x.rank() == 0 || x.back() != n)) c.refuse(n, " imputed values for input of shape ", x);
    c.out(0, x);
  }
  void run(const RunContext& c) const override {
    dispatch(c.in(0).type, Types<float, double, int64_t, int32_t>{}, [&]<class T>() {
      if constexpr (std::is_floating_point_v<T>)
        replace(c, static_cast<T>(replaced_), imputed_);
      else
        replace(c, static_cast<T>(replaced_int_), imputed_ints_);
    });
  }

 private:
  template <class T, class V>
  void replace(const RunContext& c, T replaced, const std::vector<V>& imputed) const {
    const T* x = c.data<T>(0);
    T* y = c.out_data<T>(0);
    const int64_t n = static_cast<int64_t>(imputed.size());
    const bool nan = replaced != replaced;
    for (int64_t i = 0, k = 0, size = c.in(0).size(); i < size; ++i) {
      y[i] = (nan ? x[i] != x[i] : x[i] == replaced) ? static_cast<T>(imputed[k]) : x[i];
      if (++k == n) k = 0;
    }
  }

  std::vector<double> imputed_;
  std::vector<int64_t> imputed_ints_;
  float replaced_ = 0;
  int64_t replaced_int_ = 0;
};

}  // namespace
}  // namespace epona

EPONA_OPS(imputer) { r.add({.name = "Imputer", .domain = "ai.onnx.ml", .make = make_kernel<Imputer>, .inplace = 1}); }
