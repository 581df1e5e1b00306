#include <algorithm>

#include "ops/convert.h"
#include "ops/indices.h"
#include "ops/math/fft.h"
#include "ops/registry.h"

namespace epona {
namespace {

constexpr int64_t kTasks = 16;

/// Inputs: signal {batch, length, 1 or 2} (or {batch, length}), frame_step, window, frame_length.
class Stft final : public Kernel {
 public:
  explicit Stft(const NodeInfo& info) : onesided_(info.attr("onesided", 1) != 0) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "input type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() != 2 && (x.rank() != 3 || x[2] < 1 || x[2] > 2))
      c.refuse("signal of shape ", x, ", expected {batch, length, 1 or 2}");
    if (onesided_ && x.rank() == 3 && x[2] == 2) c.refuse("onesided needs a real signal, found shape ", x);
    const int64_t length = frame_length(c, c.value(3), c.has(2) ? &c.in(2) : nullptr, x[1]);
    const int64_t step = one_int(c, *c.value(1), "frame_step");
    if (step <= 0) c.refuse("frame_step ", step, " is not positive");
    const int64_t frames = x[1] < length ? 0 : (x[1] - length) / step + 1;
    const Fft fft(length);
    c.workspace(type_bytes(
        DataType::complex128,
        checked_add(fft.table_size() + length, checked_mul(kTasks, checked_add(length, fft.scratch_size())))));
    c.out(0, Shape{x[0], frames, onesided_ ? length / 2 + 1 : length, 2});
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    if (y.size() == 0) return;
    const int64_t signal = x.shape[1], parts = x.shape.rank() == 3 ? x.shape[2] : 1;
    const int64_t length = frame_length(c, c.has(3) ? &c.in(3) : nullptr, c.has(2) ? &c.in(2).shape : nullptr, signal);
    const int64_t step = one_int(c, c.in(1), "frame_step");
    const Fft fft(length);
    Fft::Complex* table = c.workspace_as<Fft::Complex>();
    fft.prepare(table);
    double* window = reinterpret_cast<double*>(table + fft.table_size());
    if (c.has(2))
      convert_elements(c.in(2).type, c.in(2).data, DataType::float64, window, 0, length);
    else
      std::fill_n(window, length, 1.0);
    const int64_t frames = y.shape[1], bins = y.shape[2], lines = y.shape[0] * frames;
    const int64_t tasks = std::min(kTasks, lines);
    const size_t in_bytes = type_bits(x.type) / 8, out_bytes = type_bits(y.type) / 8;
    c.pool().run(tasks, [&](int64_t task) {
      Fft::Complex* data = table + fft.table_size() + length + task * (length + fft.scratch_size());
      for (int64_t line = lines * task / tasks; line < lines * (task + 1) / tasks; ++line) {
        const int64_t at = (line / frames * signal + line % frames * step) * parts;
        const char* from = static_cast<const char*>(x.data) + static_cast<size_t>(at) * in_bytes;
        // The frame is converted into the scratch part, then spread out as complex numbers.
        double* raw = reinterpret_cast<double*>(data + length);
        convert_elements(x.type, from, DataType::float64, raw, 0, length * parts);
        for (int64_t k = 0; k < length; ++k)
          data[k] = Fft::Complex(raw[k * parts], parts == 2 ? raw[k * parts + 1] : 0.0) * window[k];
        fft.transform(data, false, table, data + length);
        convert_elements(DataType::float64, data, y.type,
                         static_cast<char*>(y.data) + static_cast<size_t>(line * bins * 2) * out_bytes, 0, bins * 2);
      }
    });
  }

 private:
  template <class Context>
  static int64_t frame_length(const Context& c, const Tensor* input, const Shape* window, int64_t signal) {
    if (window && window->rank() != 1) c.refuse("window of shape ", *window, ", expected rank 1");
    int64_t length = input ? one_int(c, *input, "frame_length") : window ? (*window)[0] : signal;
    if (length <= 0) c.refuse("frame_length ", length, " is not positive");
    if (window && (*window)[0] != length)
      c.refuse("window of shape ", *window, " and frame_length ", length, " differ");
    return length;
  }

  bool onesided_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(stft) { r.add({.name = "STFT", .since = 17, .make = make_kernel<Stft>, .shape_inputs = 0b1010}); }
