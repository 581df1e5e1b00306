#include <cmath>

#include "kernels/strided_copy.h"
#include "ops/convert.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// OneHot: values = [off, on]; a new axis of length depth with `on` where the index points to. An index outside
/// [-depth, depth) gives a row of `off`.
class OneHot final : public Kernel {
 public:
  explicit OneHot(const NodeInfo& info) : axis_(info.attr("axis", -1)) {
    for (int i : {0, 1})
      if (!is_float(info.in_type(i)) && !is_integer(info.in_type(i)))
        info.refuse(Code::not_implemented, "type ", info.in_type(i), " of input ", i);
  }
  void shapes(ShapeContext& c) const override {
    if (!c.value(1) || c.value(1)->size() != 1) c.refuse("depth must be one number");
    int64_t depth = number(*c.value(1), 0);
    if (depth <= 0) c.refuse("depth must be positive, found ", depth);
    Shape out = c.in(0);
    out.insert(resolve_axis(c, axis_, out.rank() + 1), depth);
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor &indices = c.in(0), &values = c.in(2);
    Tensor& out = c.out(0);
    if (values.size() != 2) c.refuse("values must be [off, on], found shape ", values.shape);
    int rank = out.shape.rank(), axis = resolve_axis(c, axis_, rank);
    int64_t depth = out.shape[axis], inner = out.shape.size(axis + 1, rank);
    fill_elements(out.type, out.size(), values.data, out.data);
    for (int64_t i = 0, n = indices.size(); i < n; ++i) {
      int64_t at = number(indices, i);
      if (at < -depth || at >= depth) continue;
      if (at < 0) at += depth;
      copy_elements(out.type, 1, values.data, 1, out.data, (i / inner * depth + at) * inner + i % inner);
    }
  }

 private:
  /// An element of any numeric type as an integer (a fraction is cut off; not a number: out of every range).
  static int64_t number(const Tensor& tensor, int64_t i) {
    if (tensor.type == DataType::int64) return tensor.as<int64_t>()[i];
    double value;
    int64_t bytes = static_cast<int64_t>(type_bits(tensor.type) / 8);
    convert_elements(tensor.type, tensor.as<char>() + i * bytes, DataType::float64, &value, 0, 1);
    return std::abs(value) < 9e18 ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::max();
  }
  int64_t axis_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(one_hot) { r.add({.name = "OneHot", .since = 9, .make = make_kernel<OneHot>, .shape_inputs = 2}); }
