#include "ops/dispatch.h"
#include "ops/integer_math.h"
#include "ops/registry.h"

namespace epona {
namespace {

struct Plus {
  static constexpr int kStart = 0;
  template <class T>
  T operator()(T a, T b) const {
    return wrap_add(a, b);
  }
};

struct Times {
  static constexpr int kStart = 1;
  template <class T>
  T operator()(T a, T b) const {
    return wrap_mul(a, b);
  }
};

using List = decltype(FloatTypes{} + Types<int32_t, int64_t, uint32_t, uint64_t>{});

/// y[i] = x[0] op ... op x[i] along an axis (exclusive: without x[i]; reverse: from the end). 16-bit floats accumulate
/// in float.
template <class Op>
class Cumulate final : public Kernel {
 public:
  explicit Cumulate(const NodeInfo& info)
      : exclusive_(info.attr("exclusive", 0) != 0), reverse_(info.attr("reverse", 0) != 0) {
    if (!contains(List{}, info.in_type(0))) info.refuse(Code::not_implemented, "element type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    if (c.in(1).size() != 1) c.refuse("axis of shape ", c.in(1), ", expected a scalar");
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override {
    const Shape& shape = c.in(0).shape;
    const int64_t rank = shape.rank();
    const Tensor& axis_tensor = c.in(1);
    int64_t axis = axis_tensor.type == DataType::int32 ? *axis_tensor.as<int32_t>() : *axis_tensor.as<int64_t>();
    if (rank == 0) c.refuse("the input is a scalar, which has no axis");
    if (axis < -rank || axis >= rank) c.refuse("axis ", axis, " is out of range for input of shape ", shape);
    if (axis < 0) axis += rank;
    const int at = static_cast<int>(axis);
    const int64_t length = shape[at], inner = shape.size(at + 1, shape.rank());
    dispatch(c.in(0).type, List{}, [&]<class T>() {
      const T* x = c.data<T>(0);
      T* y = c.out_data<T>(0);
      // A line is one position of the other dims; neighbours in `inner` are taken together.
      constexpr int64_t kLines = 64;
      const int64_t groups = (inner + kLines - 1) / kLines;
      c.pool().parallel_for(shape.size(0, at) * groups, static_cast<double>(length * std::min(inner, kLines)),
                            [&](int64_t begin, int64_t end) {
                              for (int64_t task = begin; task < end; ++task) {
                                int64_t first = task % groups * kLines;
                                int64_t start = task / groups * length * inner + first;
                                lines(x + start, y + start, length, inner, std::min(kLines, inner - first));
                              }
                            });
    });
  }

 private:
  template <class T>
  void lines(const T* x, T* y, int64_t length, int64_t stride, int64_t count) const {
    using C = Compute<T>;
    C total[64];
    std::fill_n(total, count, C(Op::kStart));
    for (int64_t step = 0; step < length; ++step) {
      const int64_t row = (reverse_ ? length - 1 - step : step) * stride;
      for (int64_t i = 0; i < count; ++i) {
        C before = total[i];
        total[i] = step ? Op()(before, static_cast<C>(x[row + i])) : static_cast<C>(x[row + i]);
        y[row + i] = T(exclusive_ ? before : total[i]);
      }
    }
  }

  bool exclusive_, reverse_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(cum_sum) {
  r.add({.name = "CumSum", .since = 11, .make = make_kernel<Cumulate<Plus>>, .inplace = 1});
  r.add({.name = "CumProd", .since = 26, .make = make_kernel<Cumulate<Times>>, .inplace = 1});
}
