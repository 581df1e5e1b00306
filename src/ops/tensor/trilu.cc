#include <algorithm>

#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Trilu: the upper (from diagonal k on) or lower (up to diagonal k) triangle of each matrix, zero elsewhere.
class Trilu final : public Kernel {
 public:
  explicit Trilu(const NodeInfo& info) : upper_(info.attr("upper", 1) != 0) {
    if (info.in_type(0) == DataType::string) info.refuse(Code::not_implemented, "type string");
  }
  void shapes(ShapeContext& c) const override {
    if (c.in(0).rank() < 2) c.refuse("the input must be a matrix or a stack of them, found shape ", c.in(0));
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override {
    static constexpr uint64_t kZero[2] = {0, 0};
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    int rank = in.shape.rank();
    int64_t rows = in.shape[rank - 2], columns = in.shape[rank - 1];
    int64_t k = c.has(1) ? one_int(c, c.in(1), "k") : 0;
    k = std::clamp<int64_t>(k, -rows, columns);
    if (in.size() == 0) return;
    for (int64_t r = 0, n = in.size() / columns; r < n; ++r) {
      // Columns before `edge` are below the diagonal.
      int64_t edge = std::clamp<int64_t>(r % rows + k + (upper_ ? 0 : 1), 0, columns), at = r * columns;
      int64_t begin = upper_ ? edge : 0, end = upper_ ? columns : edge;
      copy_elements(in.type, end - begin, in.data, at + begin, out.data, at + begin);
      fill_elements(in.type, begin, kZero, out.data, at);
      fill_elements(in.type, columns - end, kZero, out.data, at + end);
    }
  }

 private:
  bool upper_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(trilu) {
  r.add({.name = "Trilu", .since = 14, .make = make_kernel<Trilu>, .inplace = 1});
  r.add({.name = "Trilu", .domain = "com.microsoft", .make = make_kernel<Trilu>, .inplace = 1});
}
