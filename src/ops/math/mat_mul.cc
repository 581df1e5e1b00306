#include "base/half_block.h"
#include "ops/dispatch.h"
#include "ops/multiply.h"
#include "ops/registry.h"

namespace epona {
namespace {

using List = Types<float, double, uint32_t, uint64_t>;

/// numpy.matmul. 16-bit floats are widened to float first, into scratch memory.
class MatMul final : public Kernel {
 public:
  explicit MatMul(const NodeInfo& info) {
    DataType type = info.in_type(0);
    if (!is_half(type) && !contains(List{}, unsigned_of(type)))
      info.refuse(Code::not_implemented, "element type ", type);
  }
  void shapes(ShapeContext& c) const override {
    MatMulDims dims = MatMulDims::of(c.node(), c.in(0), c.in(1));
    if (is_half(c.in_type(0)))
      c.workspace(type_bytes(DataType::float32, c.in(0).size() + c.in(1).size() + dims.out.size()));
    c.out(0, dims.out);
  }
  void run(const RunContext& c) const override {
    const Tensor &a = c.in(0), &b = c.in(1);
    Tensor& y = c.out(0);
    const MatMulDims dims = MatMulDims::of(c.node(), a.shape, b.shape);
    if (is_half(a.type)) {
      float* wide = c.workspace_as<float>();
      float* wide_b = wide + a.size();
      float* sums = wide_b + b.size();
      widen_half(a.type, a.data, wide, a.size());
      widen_half(b.type, b.data, wide_b, b.size());
      go(c, dims, wide, wide_b, sums);
      narrow_half(y.type, sums, y.data, y.size());
      return;
    }
    dispatch(unsigned_of(a.type), List{}, [&]<class T>() { go(c, dims, a.as<T>(), b.as<T>(), y.as<T>()); });
  }

 private:
  static DataType unsigned_of(DataType type) {
    return type == DataType::int32 ? DataType::uint32 : type == DataType::int64 ? DataType::uint64 : type;
  }

  template <class T>
  static void go(const RunContext& c, const MatMulDims& d, const T* a, const T* b, T* y) {
    each_row_block(c.pool(), d.batches(), d.m, d.n, d.k, [&](int64_t batch, int64_t row, int64_t rows) {
      int64_t ai, bi;
      d.find(batch, ai, bi);
      multiply<T, T>(rows, d.n, d.k, {a + (ai * d.m + row) * d.k, d.k, 1}, {b + bi * d.k * d.n, d.n, 1},
                     y + (batch * d.m + row) * d.n, d.n);
    });
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(mat_mul) { r.add({.name = "MatMul", .make = make_kernel<MatMul>}); }
