#include <algorithm>

#include "ops/convert.h"
#include "ops/indices.h"
#include "ops/math/fft.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Lines are transformed by this many tasks at most, each with scratch of its own.
constexpr int64_t kTasks = 16;

/// The last dim holds real (1) or real and imaginary parts (2). The axis is an attribute before opset 20 and input 2 since.
class Dft final : public Kernel {
 public:
  explicit Dft(const NodeInfo& info)
      : axis_(info.attr("axis", info.opset() < 20 ? 1 : -2)),
        inverse_(info.attr("inverse", 0) != 0),
        onesided_(info.attr("onesided", 0) != 0) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "input type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() < 2 || x.back() < 1 || x.back() > 2)
      c.refuse("input of shape ", x, ", expected a last dim of 1 (real) or 2 (complex)");
    const int axis = axis_of(c, c.value(2), x);
    const int64_t length = length_of(c, c.value(1), x[axis]);
    Shape out = x;
    const bool real_result = onesided_ && inverse_;
    out[axis] = onesided_ && !inverse_ ? length / 2 + 1 : length;
    out[out.rank() - 1] = real_result ? 1 : 2;
    if (length > 0) {
      const Fft fft(length);
      const int64_t per_task = checked_add(length, fft.scratch_size());
      c.workspace(type_bytes(DataType::complex128, checked_add(fft.table_size(), checked_mul(kTasks, per_task))));
    }
    c.out(0, std::move(out));
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    if (y.size() == 0) return;
    const int axis = axis_of(c, c.has(2) ? &c.in(2) : nullptr, x.shape);
    const int64_t length = length_of(c, c.has(1) ? &c.in(1) : nullptr, x.shape[axis]);
    const Fft fft(length);
    Fft::Complex* table = c.workspace_as<Fft::Complex>();
    fft.prepare(table);
    const int64_t inner = x.shape.size(axis + 1, x.shape.rank() - 1), lines = x.shape.size(0, axis) * inner;
    const int64_t tasks = std::min(kTasks, lines);
    c.pool().run(tasks, [&](int64_t task) {
      Fft::Complex* data = table + fft.table_size() + task * (length + fft.scratch_size());
      for (int64_t line = lines * task / tasks; line < lines * (task + 1) / tasks; ++line) {
        load(x, axis, line / inner, line % inner, inner, length, data);
        fft.transform(data, inverse_, table, data + length);
        store(y, axis, line / inner, line % inner, inner, inverse_ ? 1.0 / static_cast<double>(length) : 1.0, data);
      }
    });
  }

 private:
  template <class Context>
  int axis_of(const Context& c, const Tensor* input, const Shape& x) const {
    int axis = resolve_axis(c, input ? one_int(c, *input, "axis") : axis_, x.rank());
    if (axis == x.rank() - 1) c.refuse("axis ", axis, " is the dim of real and imaginary parts");
    return axis;
  }
  template <class Context>
  int64_t length_of(const Context& c, const Tensor* input, int64_t dim) const {
    int64_t length = input ? one_int(c, *input, "dft_length") : onesided_ && inverse_ ? 2 * (dim - 1) : dim;
    if (length < 0) c.refuse("dft_length ", length, " is negative");
    return length;
  }

  template <class T>
  static T element(const Tensor& x, int64_t i) {
    if (x.type == DataType::float32) return static_cast<T>(x.as<float>()[i]);
    T value;
    convert_elements(x.type, static_cast<const char*>(x.data) + static_cast<size_t>(i) * type_bits(x.type) / 8,
                     data_type_of<T>, &value, 0, 1);
    return value;
  }

  void load(const Tensor& x, int axis, int64_t outer, int64_t i, int64_t inner, int64_t length,
            Fft::Complex* data) const {
    const int64_t parts = x.shape.back(), given = std::min(length, x.shape[axis]);
    for (int64_t k = 0; k < given; ++k) {
      const int64_t at = ((outer * x.shape[axis] + k) * inner + i) * parts;
      data[k] = {element<double>(x, at), parts == 2 ? element<double>(x, at + 1) : 0.0};
    }
    std::fill(data + given, data + length, Fft::Complex());
    if (!(onesided_ && inverse_)) return;
    // Half a spectrum: the rest mirrors it, and what must be real is.
    data[0] = data[0].real();
    for (int64_t k = 1; 2 * k <= length; ++k) {
      if (2 * k == length) data[k] = data[k].real();
      data[length - k] = std::conj(data[k]);
    }
  }

  static void store(Tensor& y, int axis, int64_t outer, int64_t i, int64_t inner, double scale,
                    const Fft::Complex* data) {
    const int64_t parts = y.shape.back(), count = y.shape[axis];
    const size_t bytes = type_bits(y.type) / 8;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = ((outer * count + k) * inner + i) * parts;
      const double pair[2] = {data[k].real() * scale, data[k].imag() * scale};
      convert_elements(DataType::float64, pair, y.type, static_cast<char*>(y.data) + static_cast<size_t>(at) * bytes, 0,
                       parts);
    }
  }

  int64_t axis_;
  bool inverse_, onesided_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(dft) { r.add({.name = "DFT", .since = 17, .make = make_kernel<Dft>, .shape_inputs = 6}); }
