#include "ops/dispatch.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// ArgMax and ArgMin. A NaN counts as the extreme value, as in numpy; among equals the first one or, with
/// select_last_index, the last one wins.
class ArgExtreme final : public Kernel {
 public:
  explicit ArgExtreme(const NodeInfo& info)
      : axis_(info.attr("axis", 0)),
        keep_dims_(info.attr("keepdims", 1) != 0),
        last_(info.attr("select_last_index", 0) != 0),
        least_(info.node().op == "ArgMin") {
    if (!contains(NumericTypes{}, info.in_type(0)))
      info.refuse(Code::not_implemented, "element type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    int64_t rank = out.rank();
    if (rank == 0 && (axis_ == 0 || axis_ == -1)) return c.out(0, std::move(out));
    if (axis_ < -rank || axis_ >= rank) c.refuse("axis ", axis_, " is out of range for input of shape ", out);
    int at = axis(out);
    if (out[at] == 0 && out.size(0, at) * out.size(at + 1, out.rank()) > 0)
      c.refuse("axis ", axis_, " of the input of shape ", out, " is empty");
    if (keep_dims_)
      out[at] = 1;
    else
      out.erase(at);
    c.out(0, std::move(out));
  }
  void run(const RunContext& c) const override {
    const Shape& shape = c.in(0).shape;
    int64_t* y = c.out_data<int64_t>(0);
    if (shape.rank() == 0) {
      *y = 0;
      return;
    }
    const int at = axis(shape);
    const int64_t length = shape[at], inner = shape.size(at + 1, shape.rank());
    dispatch(c.in(0).type, NumericTypes{}, [&]<class T>() {
      const T* x = c.data<T>(0);
      c.pool().parallel_for(shape.size(0, at) * inner, static_cast<double>(length), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = find(x + i / inner * length * inner + i % inner, length, inner);
      });
    });
  }

 private:
  int axis(const Shape& shape) const { return static_cast<int>(axis_ < 0 ? axis_ + shape.rank() : axis_); }

  template <class T>
  int64_t find(const T* x, int64_t length, int64_t stride) const {
    using C = Compute<T>;
    C best = static_cast<C>(x[0]);
    int64_t index = 0;
    for (int64_t i = 1; i < length; ++i) {
      C value = static_cast<C>(x[i * stride]);
      bool better = best == best && (least_ ? value < best : value > best);
      if (value != value) better = best == best || last_;
      if (better || (last_ && value == best)) {
        best = value;
        index = i;
      }
    }
    return index;
  }

  int64_t axis_;
  bool keep_dims_, last_, least_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(arg_max) {
  r.add({.name = "ArgMax", .make = make_kernel<ArgExtreme>});
  r.add({.name = "ArgMin", .make = make_kernel<ArgExtreme>});
}
