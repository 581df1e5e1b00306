#include "base/half_block.h"
#include "ops/broadcast.h"
#include "ops/convert.h"
#include "ops/dispatch.h"
#include "ops/multiply.h"
#include "ops/registry.h"

namespace epona {
namespace {

using List = Types<float, double, int32_t, int64_t, uint32_t, uint64_t>;

/// Y = alpha * op(A) * op(B) + beta * C. 16-bit floats are widened first; integers scale in double unless both factors
/// are one.
class Gemm final : public Kernel {
 public:
  explicit Gemm(const NodeInfo& info)
      : alpha_(info.attr("alpha", 1.0f)),
        beta_(info.attr("beta", 1.0f)),
        trans_a_(info.attr("transA", 0) != 0),
        trans_b_(info.attr("transB", 0) != 0) {
    DataType type = info.in_type(0);
    if (!is_half(type) && !contains(List{}, type)) info.refuse(Code::not_implemented, "element type ", type);
  }
  void shapes(ShapeContext& c) const override {
    const Shape &a = c.in(0), &b = c.in(1);
    if (a.rank() != 2 || b.rank() != 2) c.refuse("matrices of shapes ", a, " and ", b, ", expected rank 2");
    if (a[trans_a_ ? 0 : 1] != b[trans_b_ ? 1 : 0])
      c.refuse("matrices of shapes ", a, trans_a_ ? " (transposed)" : "", " and ", b, trans_b_ ? " (transposed)" : "",
               " do not multiply");
    Shape out{a[trans_a_ ? 1 : 0], b[trans_b_ ? 0 : 1]};
    if (c.has(2) && !broadcasts_to(c.in(2), out)) c.refuse("C of shape ", c.in(2), " does not broadcast to ", out);
    if (is_half(c.in_type(0)))
      c.workspace(type_bytes(DataType::float32, a.size() + b.size() + out.size() + (c.has(2) ? c.in(2).size() : 0)));
    c.out(0, std::move(out));
  }
  void run(const RunContext& c) const override {
    const Tensor &a = c.in(0), &b = c.in(1);
    Tensor& y = c.out(0);
    if (!is_half(a.type)) {
      dispatch(a.type, List{}, [&]<class T>() { go<T>(c, a.as<T>(), b.as<T>(), c.data<T>(2), y.as<T>()); });
      return;
    }
    float* next = c.workspace_as<float>();
    auto widen = [&](const Tensor& t) {
      float* to = next;
      next += t.size();
      widen_half(t.type, t.data, to, t.size());
      return to;
    };
    const float *wide_a = widen(a), *wide_b = widen(b), *wide_c = c.has(2) ? widen(c.in(2)) : nullptr;
    go<float>(c, wide_a, wide_b, wide_c, next);
    narrow_half(y.type, next, y.data, y.size());
  }

 private:
  template <class T>
  void go(const RunContext& c, const T* a, const T* b, const T* bias, T* y) const {
    const Shape &out = c.out(0).shape, &a_shape = c.in(0).shape;
    const int64_t m = out[0], n = out[1], k = a_shape[trans_a_ ? 0 : 1];
    const MatrixView<T> left{a, trans_a_ ? 1 : k, trans_a_ ? m : 1}, right{b, trans_b_ ? 1 : n, trans_b_ ? k : 1};
    const Shape scalar = {};
    const Broadcast<1> addend(out, {bias ? &c.in(2).shape : &scalar});
    each_row_block(c.pool(), 1, m, n, k, [&](int64_t, int64_t row, int64_t rows) {
      T* to = y + row * n;
      using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
      multiply<U, U>(rows, n, k, {reinterpret_cast<const U*>(left.data + row * left.row), left.row, left.col},
                     {reinterpret_cast<const U*>(right.data), right.row, right.col}, reinterpret_cast<U*>(to), n);
      if (!bias || beta_ == 0) {
        if (alpha_ != 1)
          for (int64_t i = 0; i < rows * n; ++i) to[i] = combine(to[i], T(0), 0);
        return;
      }
      const int step = addend.step(0);
      addend.walk(row * n, (row + rows) * n, [&](int64_t at, const int64_t* in, int64_t count) {
        for (int64_t i = 0; i < count; ++i) y[at + i] = combine(y[at + i], bias[in[0] + i * step], beta_);
      });
    });
  }

  template <class T>
  T combine(T sum, T addend, float beta) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      if (alpha_ == 1 && beta == 1) return static_cast<T>(static_cast<U>(sum) + static_cast<U>(addend));
      double value = static_cast<double>(alpha_) * static_cast<double>(sum) +
                     static_cast<double>(beta) * static_cast<double>(addend);
      T result;
      convert_elements(DataType::float64, &value, data_type_of<T>, &result, 0, 1);
      return result;
    } else {
      return static_cast<T>(alpha_) * sum + static_cast<T>(beta) * addend;
    }
  }

  float alpha_, beta_;
  bool trans_a_, trans_b_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(gemm) { r.add({.name = "Gemm", .make = make_kernel<Gemm>}); }
