#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// GatherElements: out[i][j][k] = in[i][index[i][j][k]][k] for axis 1.
class GatherElements final : public Kernel {
 public:
  explicit GatherElements(const NodeInfo& info) : axis_(info.attr("axis", 0)) {}
  void shapes(ShapeContext& c) const override {
    const Shape &in = c.in(0), &indices = c.in(1);
    int axis = resolve_axis(c, axis_, in.rank());
    bool fits = indices.rank() == in.rank();
    for (int i = 0; fits && i < in.rank(); ++i) fits = i == axis || indices[i] <= in[i];
    if (!fits) c.refuse("indices of shape ", indices, " do not fit input of shape ", in, " along axis ", axis);
    c.out(0, indices);
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    check_index_type(c, c.in(1), "indices");
    switch (is_subbyte(in.type) || in.type == DataType::string ? 0 : type_bits(in.type) / 8) {
      case 1:
        return gather<uint8_t>(c);
      case 2:
        return gather<uint16_t>(c);
      case 4:
        return gather<uint32_t>(c);
      case 8:
        return gather<uint64_t>(c);
      default:
        return gather<void>(c);
    }
  }

 private:
  template <class T>
  void gather(const RunContext& c) const {
    const Tensor &in = c.in(0), &indices = c.in(1);
    Tensor& out = c.out(0);
    int rank = in.shape.rank(), axis = resolve_axis(c, axis_, rank);
    Shape strides = row_major_strides(in.shape);
    int64_t row = rank ? indices.shape[rank - 1] : 1, dim = in.shape[axis], step = axis == rank - 1 ? 0 : 1;
    if (indices.size() == 0) return;
    auto rows = [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t base = 0;
        for (int64_t i = rank - 2, rest = r; i >= 0; rest /= indices.shape[static_cast<int>(i)], --i)
          if (i != axis) base += rest % indices.shape[static_cast<int>(i)] * strides[static_cast<int>(i)];
        for (int64_t j = 0; j < row; ++j) {
          int64_t at = int_at(indices, r * row + j);
          if (at < -dim || at >= dim)
            c.refuse("index ", at, " is out of range [", -dim, ",", dim - 1, "] for axis ", axis);
          int64_t from = base + j * step + (at < 0 ? at + dim : at) * strides[axis];
          if constexpr (std::is_void_v<T>)
            copy_elements(in.type, 1, in.data, from, out.data, r * row + j);
          else
            out.as<T>()[r * row + j] = in.as<T>()[from];
        }
      }
    };
    if (is_subbyte(in.type))
      rows(0, indices.size() / row);  // neighbours share a byte
    else
      c.pool().parallel_for(indices.size() / row, static_cast<double>(row) * 2 + 20, rows);
  }
  int64_t axis_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(gather_elements) { r.add({.name = "GatherElements", .since = 11, .make = make_kernel<GatherElements>}); }
