#include "ops/indices.h"
#include "ops/quant/byte_table.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// com.microsoft QLinearConcat: y_scale, y_zero, then (tensor, scale, zero) for each part.
class QLinearConcat final : public Kernel {
 public:
  explicit QLinearConcat(const NodeInfo& info) : axis_(info.attr("axis", 0)) {
    if (!info.has_attr("axis")) info.refuse(Code::invalid_graph, "attribute axis is missing");
    if (info.inputs() < 5 || info.inputs() % 3 != 2)
      info.refuse(Code::invalid_graph, info.inputs(), " inputs, expected 2 and then 3 for each part");
    for (int i = 2; i < info.inputs(); i += 3) check_byte_type(info, i);
  }
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(2);
    const int axis = resolve_axis(c, axis_, out.rank());
    out[axis] = 0;
    for (int i = 2; i < c.inputs(); i += 3) {
      Shape part = c.in(i);
      check_scalar(c, i + 1);
      check_scalar(c, i + 2);
      if (part.rank() != out.rank()) c.refuse("input ", i, " of shape ", part, " has another rank than ", c.in(2));
      int64_t total = checked_add(out[axis], part[axis]);
      part[axis] = out[axis];
      if (part != out) c.refuse("input ", i, " of shape ", c.in(i), " does not fit ", c.in(2), " along axis ", axis);
      out[axis] = total;
    }
    c.out(0, std::move(out));
  }
  void run(const RunContext& c) const override {
    Tensor& y = c.out(0);
    const int axis = resolve_axis(c, axis_, y.shape.rank());
    const ByteScale to = byte_scale(c, y.type, 0, 1);
    const int64_t inner = y.shape.size(axis + 1, y.shape.rank()), outer = y.shape.size(0, axis);
    const int64_t row = y.shape[axis] * inner;
    int64_t start = 0;
    for (int i = 2; i < c.inputs(); i += 3) {
      const Tensor& x = c.in(i);
      const CodeTable table(byte_scale(c, x.type, i + 1, i + 2), to, [](float value) { return value; });
      const int64_t part = x.shape[axis] * inner;
      c.pool().parallel_for(outer, static_cast<double>(part), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          const uint8_t* from = x.as<uint8_t>() + o * part;
          uint8_t* out = y.as<uint8_t>() + o * row + start;
          for (int64_t k = 0; k < part; ++k) out[k] = table.code[from[k]];
        }
      });
      start += part;
    }
  }

 private:
  int64_t axis_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(q_linear_concat) {
  r.add({.name = "QLinearConcat", .domain = "com.microsoft", .make = make_kernel<QLinearConcat>});
}
