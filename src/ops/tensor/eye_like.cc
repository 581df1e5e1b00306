#include <algorithm>

#include "kernels/strided_copy.h"
#include "ops/convert.h"
#include "ops/registry.h"
#include "ops/type_attribute.h"

namespace epona {
namespace {

/// EyeLike: a matrix of the input's shape with ones on diagonal k; the type is the attribute's or the input's.
class EyeLike final : public Kernel {
 public:
  explicit EyeLike(const NodeInfo& info) : k_(info.attr("k", 0)) {
    const DataType type = type_attribute(info, "dtype", info.in_type(0));
    if (!is_float(type) && !is_integer(type) && type != DataType::boolean)
      info.refuse(Code::not_implemented, "type ", type);
  }
  void shapes(ShapeContext& c) const override {
    if (c.in(0).rank() != 2) c.refuse("the input must be a matrix, found shape ", c.in(0));
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override {
    Tensor& out = c.out(0);
    int64_t rows = out.shape[0], columns = out.shape[1];
    std::fill_n(out.as<char>(), out.bytes(), char{0});
    alignas(8) char one[8];
    const float number = 1;
    convert_elements(DataType::float32, &number, out.type, one, 0, 1);
    if (k_ <= -rows || k_ >= columns) return;
    for (int64_t r = std::max<int64_t>(0, -k_); r < rows && r + k_ < columns; ++r)
      copy_elements(out.type, 1, one, 0, out.data, r * columns + r + k_);
  }

 private:
  int64_t k_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(eye_like) { r.add({.name = "EyeLike", .since = 9, .make = make_kernel<EyeLike>, .shape_only = true}); }
