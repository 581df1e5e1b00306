#pragma once
#include <algorithm>
#include <type_traits>

#include "base/half_block.h"
#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/registry.h"

namespace epona {

/// y[i] = f(x[i]). The base classes know shapes, threads, broadcasting and the 16-bit floats (computed in float, block
/// by block); the loops over one type come from Unary<Op>, Binary<Op> and Variadic<Op> below.
class UnaryKernel : public Kernel {
 public:
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override;

 protected:
  explicit UnaryKernel(double ns_per_item) : ns_per_item_(ns_per_item) {}
  /// n elements of `type`, which is never a 16-bit float.
  virtual void loop(DataType type, const void* x, void* y, int64_t n) const = 0;

 private:
  double ns_per_item_;
};

/// z[i] = f(x[i], y[i]) with broadcasting.
class BinaryKernel : public Kernel {
 public:
  void shapes(ShapeContext& c) const override;
  void run(const RunContext& c) const override;

 protected:
  BinaryKernel(const NodeInfo& info, double ns_per_item) : ns_per_item_(ns_per_item), legacy_(info) {}
  /// n elements of `type`, never a 16-bit float; x and y advance by 0 or 1 a step.
  virtual void loop(DataType type, const void* x, int step_x, const void* y, int step_y, void* z, int64_t n) const = 0;

  double ns_per_item_;

 private:
  LegacyBroadcast legacy_;
};

/// z = f(f(x0, x1), x2)... of one operand or more, with broadcasting.
class VariadicKernel : public BinaryKernel {
 public:
  void shapes(ShapeContext& c) const override { c.out(0, broadcast_inputs(c, 0, c.inputs())); }
  void run(const RunContext& c) const override;

 protected:
  using BinaryKernel::BinaryKernel;
  /// Applied at last to all elements; `count` is the number of operands.
  virtual void finish(DataType type, void* z, int64_t n, int count) const = 0;
};

/// Refuses a type that is neither listed nor, when float is, a 16-bit float.
void check_elementwise_type(const NodeInfo& info, bool listed, bool has_float);

/// Operators with attributes are built from the node.
template <class Op>
Op make_op(const NodeInfo& info) {
  if constexpr (std::is_constructible_v<Op, const NodeInfo&>)
    return Op(info);
  else
    return Op();
}

/// Op has `template <class T> R operator()(T x) const` and `static constexpr double kNs`, the cost of one element.
template <class Op, class List = Types<float, double>>
class Unary final : public UnaryKernel {
 public:
  explicit Unary(const NodeInfo& info) : UnaryKernel(Op::kNs), op_(make_op<Op>(info)) {
    check_elementwise_type(info, contains(List{}, info.in_type(0)), contains(List{}, DataType::float32));
  }

 private:
  void loop(DataType type, const void* x, void* y, int64_t n) const override {
    dispatch(type, List{}, [&]<class T>() {
      using R = decltype(op_(T()));
      const T* from = static_cast<const T*>(x);
      R* to = static_cast<R*>(y);
      for (int64_t i = 0; i < n; ++i) to[i] = op_(from[i]);
    });
  }

  Op op_;
};

template <class Op, class List, class Base>
class BroadcastOp : public Base {
 public:
  explicit BroadcastOp(const NodeInfo& info) : Base(info, Op::kNs), op_(make_op<Op>(info)) {
    check_elementwise_type(info, contains(List{}, info.in_type(0)), contains(List{}, DataType::float32));
  }

 private:
  void loop(DataType type, const void* x, int step_x, const void* y, int step_y, void* z, int64_t n) const override {
    dispatch(type, List{}, [&]<class T>() {
      using R = decltype(op_(T(), T()));
      const T* a = static_cast<const T*>(x);
      const T* b = static_cast<const T*>(y);
      R* to = static_cast<R*>(z);
      if (step_x && step_y) {
        for (int64_t i = 0; i < n; ++i) to[i] = op_(a[i], b[i]);
      } else if (step_x) {
        const T fixed = *b;
        for (int64_t i = 0; i < n; ++i) to[i] = op_(a[i], fixed);
      } else if (step_y) {
        const T fixed = *a;
        for (int64_t i = 0; i < n; ++i) to[i] = op_(fixed, b[i]);
      } else {
        std::fill_n(to, n, op_(*a, *b));
      }
    });
  }

 protected:
  Op op_;
};

/// Op has `template <class T> R operator()(T x, T y) const` and kNs.
template <class Op, class List = Types<float, double>>
using Binary = BroadcastOp<Op, List, BinaryKernel>;

/// Also, where the result is made of all inputs (a mean): `T finish(T x, int count) const`.
template <class Op, class List = Types<float, double>>
class Variadic final : public BroadcastOp<Op, List, VariadicKernel> {
 public:
  using BroadcastOp<Op, List, VariadicKernel>::BroadcastOp;

 private:
  void finish([[maybe_unused]] DataType type, [[maybe_unused]] void* z, [[maybe_unused]] int64_t n,
              [[maybe_unused]] int count) const override {
    if constexpr (requires(Op op) { op.finish(float(), 1); }) {
      dispatch(type, List{}, [&]<class T>() {
        T* to = static_cast<T*>(z);
        for (int64_t i = 0; i < n; ++i) to[i] = this->op_.finish(to[i], count);
      });
    }
  }
};

}  // namespace epona
