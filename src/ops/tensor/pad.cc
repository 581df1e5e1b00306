#include <algorithm>
#include <cstring>

#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Pad. Negative pads crop first, then the rest pads what is left, as numpy does. Pads: attribute `paddings` in opset
/// 1, `pads` in 2, input from 11; axes from 18.
class Pad final : public Kernel {
 public:
  explicit Pad(const NodeInfo& info) : from_attributes_(info.opset() < 11 && info.node().domain.empty()) {
    std::string mode = info.attr("mode", "constant");
    if (mode == "constant")
      mode_ = Mode::constant;
    else if (mode == "reflect")
      mode_ = Mode::reflect;
    else if (mode == "edge")
      mode_ = Mode::edge;
    else if (mode == "wrap")
      mode_ = Mode::wrap;
    else
      info.refuse(Code::invalid_graph, "unknown mode '", mode, "'");
    if (!from_attributes_) return;
    pads_ = info.ints(info.has_attr("pads") ? "pads" : "paddings");
    float value = info.attr("value", 0.0f);
    switch (info.in_type(0)) {
      case DataType::float32:
        value_ = Tensor::scalar(value);
        break;
      case DataType::float64:
        value_ = Tensor::scalar<double>(value);
        break;
      case DataType::float16:
        value_ = Tensor::scalar(Float16(value));
        break;
      default:
        info.refuse(Code::not_implemented, "type ", info.in_type(0));
    }
  }
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    for_each_axis(c, c.in(0), [&](int axis, int64_t crop, int64_t kept, int64_t before, int64_t after) {
      static_cast<void>(crop);
      out[axis] = checked_add(checked_add(kept, before), after);
    });
    if (mode_ != Mode::constant && !from_attributes_ && c.has(2) && c.in(2).size() > 1)
      c.refuse("constant_value must be one element");
    size_t maps = 0;
    for (int64_t dim : out) maps += static_cast<size_t>(dim);
    if (mode_ != Mode::constant) c.workspace(checked_mul(static_cast<int64_t>(maps), sizeof(int64_t)));
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    if (out.size() == 0) return;
    if (mode_ == Mode::constant)
      run_constant(c, in, out);
    else
      run_mapped(c, in, out);
  }

 private:
  enum class Mode { constant, reflect, edge, wrap };

  void run_constant(const RunContext& c, const Tensor& in, Tensor& out) const {
    static constexpr uint64_t kZero[2] = {0, 0};
    const std::string empty;
    const void* value = in.type == DataType::string ? static_cast<const void*>(&empty) : kZero;
    if (value_) value = value_.data;
    if (!from_attributes_ && c.has(2)) {
      const Tensor& given = c.in(2);
      if (given.size() != 1 || given.type != in.type)
        c.refuse("constant_value must be one element of type ", in.type, ", found ", given.type, given.shape);
      value = given.data;
    }
    Shape kept = in.shape, in_strides = row_major_strides(in.shape), out_strides = row_major_strides(out.shape);
    int64_t from = 0, to = 0;
    for_each_axis(c, in.shape, [&](int axis, int64_t crop, int64_t size, int64_t before, int64_t) {
      kept[axis] = size;
      from += crop * in_strides[axis];
      to += before * out_strides[axis];
    });
    if (kept.size() != out.size()) fill_elements(out.type, out.size(), value, out.data);
    StridedCopy copy(in.type);
    for (int i = 0; i < kept.rank(); ++i) copy.dim(kept[i], in_strides[i], out_strides[i]);
    copy.run(c.pool(), in.data, from, out.data, to);
  }

  /// Where position i of an axis with `kept` elements, padded by `before`, takes its element from.
  int64_t source(int64_t i, int64_t kept, int64_t before) const {
    i -= before;
    switch (mode_) {
      case Mode::edge:
        return std::clamp<int64_t>(i, 0, kept - 1);
      case Mode::wrap:
        return (i % kept + kept) % kept;
      default:
        break;
    }
    if (kept == 1) return 0;
    int64_t period = 2 * (kept - 1);
    i = (i % period + period) % period;
    return i < kept ? i : period - i;
  }

  void run_mapped(const RunContext& c, const Tensor& in, Tensor& out) const {
    int rank = out.shape.rank();
    Shape strides = row_major_strides(in.shape);
    Shape start(rank, 0);  // of each axis' map in the workspace
    for (int i = 1; i < rank; ++i) start[i] = start[i - 1] + out.shape[i - 1];
    int64_t* maps = c.workspace_as<int64_t>();
    for (int i = 0; i < rank; ++i)
      for (int64_t j = 0; j < out.shape[i]; ++j) maps[start[i] + j] = j * strides[i];
    int64_t run_begin = 0,
            run_end = rank ? out.shape[rank - 1] : 1;  // the part of a row that is contiguous in the input
    for_each_axis(c, in.shape, [&](int axis, int64_t crop, int64_t kept, int64_t before, int64_t) {
      for (int64_t j = 0; j < out.shape[axis]; ++j)
        maps[start[axis] + j] = (crop + source(j, kept, before)) * strides[axis];
      if (axis == rank - 1) run_begin = before, run_end = before + kept;
    });
    int64_t row = rank ? out.shape[rank - 1] : 1;
    const int64_t* columns = rank ? maps + start[rank - 1] : nullptr;
    const int64_t bytes =
        in.type == DataType::string || is_subbyte(in.type) ? 0 : static_cast<int64_t>(type_bits(in.type) / 8);
    auto rows = [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t base = 0, rest = r;
        for (int i = rank - 2; i >= 0; rest /= out.shape[i], --i) base += maps[start[i] + rest % out.shape[i]];
        auto mapped = [&](int64_t from, int64_t to) {
          for (int64_t j = from; j < to; ++j) {
            if (bytes)
              std::memcpy(out.as<char>() + (r * row + j) * bytes, in.as<char>() + (base + columns[j]) * bytes,
                          static_cast<size_t>(bytes));
            else
              copy_elements(in.type, 1, in.data, base + columns[j], out.data, r * row + j);
          }
        };
        mapped(0, run_begin);
        copy_elements(in.type, run_end - run_begin, in.data, base + (columns ? columns[run_begin] : 0), out.data,
                      r * row + run_begin);
        mapped(run_end, row);
      }
    };
    if (is_subbyte(in.type))
      rows(0, out.size() / row);
    else
      c.pool().parallel_for(out.size() / row, 20 + static_cast<double>(row) * 0.5, rows);
  }

  static const Tensor* input(const ShapeContext& c, int i) { return c.value(i); }
  static const Tensor* input(const RunContext& c, int i) { return c.has(i) ? &c.in(i) : nullptr; }

  /// Calls fn(axis, crop before, elements kept, pad before, pad after) for every axis that changes.
  template <class Context, class Fn>
  void for_each_axis(const Context& c, const Shape& in, Fn&& fn) const {
    const Tensor *pads = nullptr, *axes = nullptr;
    int64_t n = static_cast<int64_t>(pads_.size());
    if (!from_attributes_) {
      pads = input(c, 1), axes = input(c, 3);
      if (!pads) c.refuse("pads must be given");
      check_index_type(c, *pads, "pads");
      if (axes) check_index_type(c, *axes, "axes");
      n = pads->size();
    }
    int64_t count = axes ? axes->size() : in.rank();
    if (n != 2 * count) c.refuse("pads has ", n, " numbers for ", count, " axes");
    Shape seen(in.rank(), 0);
    for (int64_t i = 0; i < count; ++i) {
      int axis = resolve_axis(c, axes ? int_at(*axes, i) : i, in.rank());
      if (seen[axis]++) c.refuse("axis ", axis, " is given twice");
      int64_t before = pads ? int_at(*pads, i) : pads_[i], after = pads ? int_at(*pads, count + i) : pads_[count + i];
      if (before == 0 && after == 0) continue;
      int64_t crop = std::max<int64_t>(-std::max(before, -in[axis] - 1), 0);
      int64_t crop_after = std::max<int64_t>(-std::max(after, -in[axis] - 1), 0);
      int64_t kept = in[axis] - crop - crop_after;
      before = std::max<int64_t>(before, 0), after = std::max<int64_t>(after, 0);
      if (kept < 0) c.refuse("the pads crop more than axis ", axis, " of input of shape ", in, " has");
      if (kept == 0 && mode_ != Mode::constant && before + after > 0)
        c.refuse("axis ", axis, " of input of shape ", in, " has no element to take the padding from");
      fn(axis, crop, kept, before, after);
    }
  }

  Mode mode_ = Mode::constant;
  bool from_attributes_;
  std::vector<int64_t> pads_;
  Tensor value_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(pad) {
  r.add({.name = "Pad", .since = 1, .make = make_kernel<Pad>, .shape_inputs = 0xa});
  r.add({.name = "Pad", .domain = "com.microsoft", .make = make_kernel<Pad>, .shape_inputs = 2});
}
