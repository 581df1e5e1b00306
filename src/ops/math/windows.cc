#include <cmath>

#include "ops/convert.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// HannWindow, HammingWindow and BlackmanWindow: a - b cos(2 pi k / n) + c cos(4 pi k / n).
class CosineWindow final : public Kernel {
 public:
  explicit CosineWindow(const NodeInfo& info) : periodic_(info.attr("periodic", 1) != 0) {
    const std::string& op = info.node().op;
    if (op == "HannWindow") {
      a_ = b_ = 0.5;
    } else if (op == "HammingWindow") {
      a_ = 25.0 / 46;
      b_ = 21.0 / 46;
    } else {
      a_ = 0.42;
      b_ = 0.5;
      c_ = 0.08;
    }
  }
  void shapes(ShapeContext& c) const override {
    int64_t size = one_int(c, *c.value(0), "size");
    if (size < 0) c.refuse("size ", size, " is negative");
    c.out(0, Shape{size});
  }
  void run(const RunContext& c) const override {
    Tensor& y = c.out(0);
    const int64_t size = y.size();
    // A symmetric window of one element is its middle.
    const double period = static_cast<double>(periodic_ ? size : size - 1);
    const size_t bytes = type_bits(y.type) / 8;
    for (int64_t k = 0; k < size; ++k) {
      const double angle = period > 0 ? 6.283185307179586 * static_cast<double>(k) / period : 3.141592653589793;
      const double value = a_ - b_ * std::cos(angle) + c_ * std::cos(2 * angle);
      convert_elements(DataType::float64, &value, y.type, static_cast<char*>(y.data) + static_cast<size_t>(k) * bytes,
                       0, 1);
    }
  }

 private:
  bool periodic_;
  double a_, b_, c_ = 0;
};

}  // namespace
}  // namespace epona

EPONA_OPS(windows) {
  for (const char* name : {"HannWindow", "HammingWindow", "BlackmanWindow"})
    r.add({.name = name, .since = 17, .make = make_kernel<CosineWindow>, .shape_inputs = 1});
}
