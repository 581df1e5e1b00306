#include <limits>
#include <optional>

#include "base/half_block.h"
#include "ops/dispatch.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// min(max, max(x, min)): a maximum below the minimum wins, NaN stays. A bound that is absent does not bind, so
/// infinities stay too.
template <class T>
void clip(const T* x, T* y, int64_t n, std::optional<T> low, std::optional<T> high) {
  if (low && high) {
    for (int64_t i = 0; i < n; ++i) {
      T value = x[i] < *low ? *low : x[i];
      y[i] = value > *high ? *high : value;
    }
  } else if (low) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < *low ? *low : x[i];
  } else if (high) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > *high ? *high : x[i];
  } else if (x != y) {
    std::copy_n(x, n, y);
  }
}

/// Bounds are attributes before opset 11 and scalar inputs since.
class Clip final : public Kernel {
 public:
  explicit Clip(const NodeInfo& info) {
    if (info.opset() < 11) {
      if (info.has_attr("min")) low_ = info.attr("min", 0.0f);
      if (info.has_attr("max")) high_ = info.attr("max", 0.0f);
    }
    DataType type = info.in_type(0);
    if (!contains(NumericTypes{}, type)) info.refuse(Code::not_implemented, "element type ", type);
  }
  void shapes(ShapeContext& c) const override {
    for (int i : {1, 2})
      if (c.has(i) && c.in(i).size() != 1) c.refuse("input ", i, " of shape ", c.in(i), ", expected a scalar");
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override {
    dispatch(c.in(0).type, NumericTypes{}, [&]<class T>() {
      using C = Compute<T>;
      std::optional<C> low, high;
      if (low_) low = static_cast<C>(*low_);
      if (high_) high = static_cast<C>(*high_);
      if (c.has(1)) low = static_cast<C>(*c.data<T>(1));
      if (c.has(2)) high = static_cast<C>(*c.data<T>(2));
      const T* x = c.data<T>(0);
      T* y = c.out_data<T>(0);
      c.pool().parallel_for(c.in(0).size(), 0.6, [&](int64_t begin, int64_t end) {
        if constexpr (std::is_same_v<T, C>) {
          clip(x + begin, y + begin, end - begin, low, high);
        } else {
          float block[kHalfBlock];
          for (int64_t n; begin < end; begin += n) {
            n = std::min(kHalfBlock, end - begin);
            widen_half(data_type_of<T>, x + begin, block, n);
            clip(block, block, n, low, high);
            narrow_half(data_type_of<T>, block, y + begin, n);
          }
        }
      });
    });
  }

 private:
  std::optional<float> low_, high_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(clip) { r.add({.name = "Clip", .since = 6, .make = make_kernel<Clip>, .inplace = 1}); }
