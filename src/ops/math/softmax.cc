#include <cmath>
#include <limits>

#include "base/half_block.h"
#include "ops/dispatch.h"
#include "ops/registry.h"

namespace epona {
namespace {

enum class Kind { softmax, log_softmax, hardmax };

/// Along an axis; before opset 13 along all dims from the axis on, flattened.
template <Kind kKind>
class Softmax final : public Kernel {
 public:
  explicit Softmax(const NodeInfo& info) : flatten_(info.opset() < 13) {
    axis_ = info.attr("axis", flatten_ ? 1 : -1);
    if (!contains(FloatTypes{}, info.in_type(0))) info.refuse(Code::not_implemented, "element type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    const int64_t rank = in.rank();
    // A flattening axis may be the rank itself: rows of one element.
    if (axis_ < -rank || axis_ > rank || (axis_ == rank && !flatten_ && rank > 0))
      c.refuse("axis ", axis_, " is out of range for input of shape ", in);
    c.out(0, in);
  }
  void run(const RunContext& c) const override {
    const Shape& shape = c.in(0).shape;
    const int rank = shape.rank(), at = static_cast<int>(axis_ < 0 ? axis_ + rank : axis_);
    int64_t length = 1, inner = 1;
    if (at < rank) {
      length = flatten_ ? shape.size(at, rank) : shape[at];
      inner = flatten_ ? 1 : shape.size(at + 1, rank);
    }
    const int64_t size = shape.size();
    if (size == 0) return;
    const int64_t outer = size / (length * inner), groups = (inner + kLines - 1) / kLines;
    dispatch(c.in(0).type, FloatTypes{}, [&]<class T>() {
      const T* x = c.data<T>(0);
      T* y = c.out_data<T>(0);
      c.pool().parallel_for(outer * groups, 8.0 * static_cast<double>(length * std::min(inner, kLines)),
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
  static constexpr int64_t kLines = 32;

  /// `count` neighbouring lines of `length` elements, `stride` apart.
  template <class T>
  static void lines(const T* x, T* y, int64_t length, int64_t stride, int64_t count) {
    using C = Compute<T>;
    if constexpr (kKind == Kind::hardmax) {
      for (int64_t i = 0; i < count; ++i) {
        int64_t best = 0;
        for (int64_t k = 1; k < length; ++k)
          if (static_cast<C>(x[k * stride + i]) > static_cast<C>(x[best * stride + i])) best = k;
        for (int64_t k = 0; k < length; ++k) y[k * stride + i] = T(k == best ? C(1) : C(0));
      }
      return;
    }
    C top[kLines], sum[kLines];
    std::fill_n(top, count, -std::numeric_limits<C>::infinity());
    std::fill_n(sum, count, C(0));
    for (int64_t k = 0; k < length; ++k)
      for (int64_t i = 0; i < count; ++i) top[i] = std::max(top[i], static_cast<C>(x[k * stride + i]));
    for (int64_t k = 0; k < length; ++k)
      for (int64_t i = 0; i < count; ++i) sum[i] += std::exp(static_cast<C>(x[k * stride + i]) - top[i]);
    for (int64_t i = 0; i < count; ++i) sum[i] = kKind == Kind::softmax ? C(1) / sum[i] : std::log(sum[i]);
    for (int64_t k = 0; k < length; ++k)
      for (int64_t i = 0; i < count; ++i) {
        C value = static_cast<C>(x[k * stride + i]) - top[i];
        y[k * stride + i] = T(kKind == Kind::softmax ? std::exp(value) * sum[i] : value - sum[i]);
      }
  }

  bool flatten_;
  int64_t axis_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(softmax) {
  r.add({.name = "Softmax", .make = make_kernel<Softmax<Kind::softmax>>, .inplace = 1});
  r.add({.name = "LogSoftmax", .make = make_kernel<Softmax<Kind::log_softmax>>, .inplace = 1});
  r.add({.name = "Hardmax", .make = make_kernel<Softmax<Kind::hardmax>>});
}
