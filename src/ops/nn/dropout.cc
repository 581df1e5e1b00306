#include <algorithm>
#include <cstring>
#include <random>

#include "ops/dispatch.h"
#include "ops/float_io.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Dropout: the input as it is, with a mask of ones; in training mode (opset 12) elements are dropped with the given
/// probability and the rest is scaled up. With a seed the draws are those of numpy's legacy generator.
class Dropout final : public Kernel {
 public:
  explicit Dropout(const NodeInfo& info) : seeded_(info.has_attr("seed")), seed_(info.attr("seed", 0)) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    c.out(0, c.in(0));
    c.out(1, c.in(0));
    for (int i : {1, 2})
      if (c.has(i) && c.in(i).size() != 1) c.refuse("input ", i, " should be a scalar");
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const bool training = c.has(2) && *c.data<bool>(2);
    double ratio = 0.5;
    if (c.has(1)) convert_floats(c.in(1).type, c.in(1).data, DataType::float64, &ratio, 1, c.pool());
    if (!training || ratio == 0) {
      if (y.data != x.data) std::memcpy(y.data, x.data, x.bytes());
      if (c.wants(1)) fill_ones(c.out(1));
      return;
    }
    if (!(ratio >= 0 && ratio < 1)) c.refuse("ratio is ", ratio, "; expected [0, 1)");
    std::mt19937 random(seeded_ ? static_cast<uint32_t>(seed_) : std::random_device()());
    bool* mask = c.out_data<bool>(1);
    dispatch(x.type, FloatTypes{}, [&]<class T>() {
      const T* from = x.as<T>();
      T* to = y.as<T>();
      const Compute<T> scale = static_cast<Compute<T>>(1 / (1 - ratio));
      for (int64_t i = 0, n = x.size(); i < n; ++i) {
        const uint32_t a = static_cast<uint32_t>(random()) >> 5, b = static_cast<uint32_t>(random()) >> 6;
        const bool keep = (a * 67108864.0 + b) / 9007199254740992.0 >= ratio;
        to[i] = keep ? static_cast<T>(static_cast<Compute<T>>(from[i]) * scale) : T(0);
        if (mask) mask[i] = keep;
      }
    });
  }

 private:
  /// Before opset 10 the mask has the type of the data.
  static void fill_ones(Tensor& mask) {
    if (mask.type == DataType::boolean)
      std::fill_n(mask.as<bool>(), mask.size(), true);
    else
      dispatch(mask.type, FloatTypes{}, [&]<class T>() { std::fill_n(mask.as<T>(), mask.size(), T(1.0f)); });
  }

  bool seeded_;
  int64_t seed_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(dropout) {
  r.add({.name = "Dropout", .until = 11, .make = make_kernel<Dropout>, .inplace = 1});
  r.add({.name = "Dropout", .since = 12, .make = make_kernel<Dropout>, .inplace = 1, .random = true});
}
