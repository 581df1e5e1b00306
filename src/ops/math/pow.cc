#include <cmath>

#include "base/half_block.h"
#include "ops/broadcast.h"
#include "ops/convert.h"
#include "ops/dispatch.h"
#include "ops/integer_math.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Integer powers wrap; a negative exponent truncates the fraction to zero (1 and -1 aside).
template <class T>
T integer_power(T base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base == T(-1)) return exponent % 2 ? T(-1) : T(1);
    return 0;
  }
  T result = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = wrap_mul(result, base);
    base = wrap_mul(base, base);
  }
  return result;
}

template <class T>
T power(T base, T exponent) {
  if constexpr (std::is_integral_v<T>) {
    return integer_power(base, exponent);
  } else {
    if (exponent == T(2)) return base * base;
    return std::pow(base, exponent);
  }
}

/// Base and exponent may have different types; the result has the base's. Blocks of both are converted to the type of the
/// computation: the base's own, double for an integer base with a float exponent.
class Pow final : public Kernel {
 public:
  explicit Pow(const NodeInfo& info) : legacy_(info) {
    DataType base = info.in_type(0), exponent = info.in_type(1);
    if (!contains(NumericTypes{}, base) || !contains(NumericTypes{}, exponent))
      info.refuse(Code::not_implemented, "element types ", base, " and ", exponent);
    if (is_integer(base))
      compute_ = is_integer(exponent) ? DataType::int64 : DataType::float64;
    else
      compute_ = base == DataType::float64 || exponent == DataType::float64 ? DataType::float64 : DataType::float32;
  }
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    if (!broadcast_into(out, legacy_.second(c.in(0), c.in(1))))
      c.refuse("shapes ", c.in(0), " and ", c.in(1), " do not broadcast");
    c.out(0, std::move(out));
  }
  void run(const RunContext& c) const override {
    dispatch(compute_, Types<float, double, int64_t>{}, [&]<class C>() { go<C>(c); });
  }

 private:
  template <class C>
  void go(const RunContext& c) const {
    const Tensor &x = c.in(0), &y = c.in(1);
    Tensor& z = c.out(0);
    const Shape y_shape = legacy_.second(x.shape, y.shape);
    const Broadcast<2> broadcast(z.shape, {&x.shape, &y_shape});
    const int64_t step_x = broadcast.step(0), step_y = broadcast.step(1);
    c.pool().parallel_for(broadcast.size(), 10, [&](int64_t begin, int64_t end) {
      C left[kConvertBlock], right[kConvertBlock];
      broadcast.walk(begin, end, [&](int64_t out, const int64_t* in, int64_t run) {
        for (int64_t done = 0, n; done < run; done += n) {
          n = std::min(kConvertBlock, run - done);
          const C* a = read(x, in[0] + done * step_x, step_x ? n : 1, left);
          const C* b = read(y, in[1] + done * step_y, step_y ? n : 1, right);
          C result[kConvertBlock];
          if (!step_y && *b == C(2)) {
            for (int64_t i = 0; i < n; ++i) result[i] = wrap_mul(a[i * step_x], a[i * step_x]);
          } else {
            for (int64_t i = 0; i < n; ++i) result[i] = power(a[i * step_x], b[i * step_y]);
          }
          char* to = static_cast<char*>(z.data) + static_cast<size_t>(out + done) * type_bits(z.type) / 8;
          convert_elements(data_type_of<C>, result, z.type, to, 0, n);
        }
      });
    });
  }

  template <class C>
  static const C* read(const Tensor& x, int64_t begin, int64_t n, C* buffer) {
    if (x.type == data_type_of<C>) return x.as<C>() + begin;
    const char* from = static_cast<const char*>(x.data) + static_cast<size_t>(begin) * type_bits(x.type) / 8;
    convert_elements(x.type, from, data_type_of<C>, buffer, 0, n);
    return buffer;
  }

  LegacyBroadcast legacy_;
  DataType compute_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(pow) { r.add({.name = "Pow", .make = make_kernel<Pow>, .inplace = 1}); }
