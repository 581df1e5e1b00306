#include <cmath>

#include "ops/dispatch.h"
#include "ops/registry.h"

namespace epona {
namespace {

using RangeTypes = Types<float, double, int16_t, int32_t, int64_t, Float16, BFloat16>;

/// Range: start, start + delta, ... up to but without limit. com.microsoft's may leave delta out: 1.
class Range final : public Kernel {
 public:
  explicit Range(const NodeInfo& info) : type_(info.in_type(0)) {
    if (!contains(RangeTypes{}, type_)) info.refuse(Code::not_implemented, "type ", type_);
  }
  void shapes(ShapeContext& c) const override {
    for (int i = 0; i < 3; ++i)
      if (c.value(i) ? c.value(i)->size() != 1 : i < 2) c.refuse("start, limit and delta must be one number each");
    int64_t count = 0;
    dispatch(type_, RangeTypes{}, [&]<class T>() {
      T start = *c.value(0)->as<T>(), limit = *c.value(1)->as<T>(), delta = c.has(2) ? *c.value(2)->as<T>() : T(1);
      if (delta == T(0)) c.refuse("delta is 0");
      if constexpr (std::is_integral_v<T>) {
        bool up = delta > 0;
        uint64_t from = static_cast<uint64_t>(up ? start : limit), to = static_cast<uint64_t>(up ? limit : start);
        uint64_t step = up ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
        if (up ? start < limit : start > limit) count = static_cast<int64_t>((to - from - 1) / step + 1);
      } else {
        double n = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
        if (!(n < 1e15)) c.refuse("start, limit and delta give no finite number of elements");
        count = n > 0 ? static_cast<int64_t>(n) : 0;
      }
    });
    c.out(0, {count});
  }
  void run(const RunContext& c) const override {
    dispatch(type_, RangeTypes{}, [&]<class T>() {
      T *out = c.out_data<T>(0), start = *c.data<T>(0), delta = c.has(2) ? *c.data<T>(2) : T(1);
      if constexpr (std::is_integral_v<T>) {
        for (int64_t i = 0, n = c.out(0).size(); i < n; ++i)
          out[i] =
              static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
      } else {
        for (int64_t i = 0, n = c.out(0).size(); i < n; ++i)
          out[i] = T(static_cast<Compute<T>>(start) + static_cast<Compute<T>>(i) * static_cast<Compute<T>>(delta));
      }
    });
  }

 private:
  DataType type_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(range) {
  r.add({.name = "Range", .since = 11, .make = make_kernel<Range>, .shape_inputs = 7});
  r.add({.name = "Range", .domain = "com.microsoft", .make = make_kernel<Range>, .shape_inputs = 7});
}
