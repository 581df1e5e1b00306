#include <cmath>

#include "ops/convert.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// IsNaN and IsInf: a test of each element of any float type.
class Classify final : public Kernel {
 public:
  explicit Classify(const NodeInfo& info) : infinite_(info.node().op == "IsInf") {
    positive_ = info.attr("detect_positive", 1) != 0;
    negative_ = info.attr("detect_negative", 1) != 0;
    DataType type = info.in_type(0);
    if (!is_float(type) && !is_small_float(type)) info.refuse(Code::not_implemented, "element type ", type);
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    bool* y = c.out_data<bool>(0);
    c.pool().parallel_for(x.size(), 1, [&](int64_t begin, int64_t end) {
      if (x.type == DataType::float64) return test(x.as<double>() + begin, y + begin, end - begin);
      if (x.type == DataType::float32) return test(x.as<float>() + begin, y + begin, end - begin);
      float block[kConvertBlock];
      for (int64_t n; begin < end; begin += n) {
        n = std::min(kConvertBlock, end - begin);
        load_floats(x.type, x.data, begin, n, block);
        test(block, y + begin, n);
      }
    });
  }

 private:
  template <class T>
  void test(const T* x, bool* y, int64_t n) const {
    if (!infinite_) {
      for (int64_t i = 0; i < n; ++i) y[i] = x[i] != x[i];
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = std::isinf(x[i]) && (x[i] > 0 ? positive_ : negative_);
    }
  }

  bool infinite_, positive_, negative_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(is_nan) {
  r.add({.name = "IsNaN", .since = 9, .make = make_kernel<Classify>});
  r.add({.name = "IsInf", .since = 10, .make = make_kernel<Classify>});
}
