#include <algorithm>

#include "ops/convert.h"
#include "ops/random/random_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Draws class indices from rows of unnormalised log probabilities.
class Multinomial final : public Kernel {
 public:
  explicit Multinomial(const NodeInfo& info) : source_(info), samples_(info.attr("sample_size", 1)) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "input type ", info.in_type(0));
    if (samples_ < 0) info.refuse(Code::invalid_argument, "sample_size ", samples_, " is negative");
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() != 2 || x[1] == 0) c.refuse("input of shape ", x, ", expected {batch, classes}");
    c.workspace(type_bytes(DataType::float64, x.size()));
    c.out(0, Shape{x[0], samples_});
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const int64_t rows = x.shape[0], classes = x.shape[1];
    double* sums = c.workspace_as<double>();
    convert_elements(x.type, x.data, DataType::float64, sums, 0, x.size());
    const RandomStream stream = source_.next();
    for (int64_t row = 0; row < rows; ++row, sums += classes) {
      // Cumulative probabilities, scaled so that the largest term is one.
      const double top = *std::max_element(sums, sums + classes);
      double total = 0;
      for (int64_t i = 0; i < classes; ++i) sums[i] = total += std::exp(sums[i] - top);
      for (int64_t s = 0; s < samples_; ++s) {
        const double at = stream.uniform(row * samples_ + s) * total;
        int64_t index = std::min(std::upper_bound(sums, sums + classes, at) - sums, classes - 1);
        if (y.type == DataType::int64)
          y.as<int64_t>()[row * samples_ + s] = index;
        else
          y.as<int32_t>()[row * samples_ + s] = static_cast<int32_t>(index);
      }
    }
  }

 private:
  RandomSource source_;
  int64_t samples_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(multinomial) { r.add({.name = "Multinomial", .since = 7, .make = make_kernel<Multinomial>, .random = true}); }
