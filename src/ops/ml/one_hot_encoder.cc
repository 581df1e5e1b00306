#include <algorithm>

#include "ops/ml/lookup.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// OneHotEncoder: every element becomes a row with a 1 at the place of its category. Floats are cut to integers.
class OneHotEncoder final : public Kernel {
 public:
  explicit OneHotEncoder(const NodeInfo& info) : zeros_(info.attr("zeros", 1) != 0) {
    const auto names = info.strings("cats_strings");
    const auto numbers = info.ints("cats_int64s");
    const bool strings_in = info.in_type(0) == DataType::string;
    if (strings_in ? names.empty() : numbers.empty())
      info.refuse(Code::invalid_graph, strings_in ? "cats_strings" : "cats_int64s", " is missing");
    lookup_.add(names);
    lookup_.add(numbers);
    columns_ = static_cast<int64_t>(strings_in ? names.size() : numbers.size());
  }

  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    y.push_back(columns_);
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    float* y = c.out_data<float>(0);
    std::fill_n(y, x.size() * columns_, 0.0f);
    auto set = [&](int64_t i, int64_t at) {
      if (at < 0 && !zeros_) c.refuse("element ", i, " is of no known category (and zeros is 0)");
      if (at >= 0) y[i * columns_ + at] = 1.0f;
    };
    auto cut = [&](auto* data) {
      // Outside of int64 there is no category; NaN compares false too.
      for (int64_t i = 0, n = x.size(); i < n; ++i)
        set(i, data[i] > -9.2e18f && data[i] < 9.2e18f ? lookup_.find(static_cast<int64_t>(data[i])) : -1);
    };
    if (x.type == DataType::float32)
      cut(x.as<float>());
    else if (x.type == DataType::float64)
      cut(x.as<double>());
    else
      lookup_.each(x, set);
  }

 private:
  bool zeros_;
  Lookup lookup_;
  int64_t columns_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(one_hot_encoder) {
  r.add({.name = "OneHotEncoder", .domain = "ai.onnx.ml", .make = make_kernel<OneHotEncoder>});
}
