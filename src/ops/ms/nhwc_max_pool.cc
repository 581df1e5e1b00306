#include <algorithm>
#include <limits>

#include "ops/nn/window.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// NhwcMaxPool: MaxPool of 8-bit integers whose channels are the last dim.
class NhwcMaxPool final : public Kernel {
 public:
  explicit NhwcMaxPool(const NodeInfo& info) : window_(info) {
    const DataType type = info.in_type(0);
    if (type != DataType::int8 && type != DataType::uint8) info.refuse(Code::not_implemented, "type ", type);
  }
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    const Window w = slide(window_, c.node(), x, kernel_of(window_, c.node(), x), 1);
    Shape y{x[0]};
    for (int64_t d : w.out) y.push_back(d);
    y.push_back(x.back());
    c.out(0, std::move(y));
  }
  void run(const RunContext& c) const override {
    if (c.in(0).type == DataType::int8)
      compute<int8_t>(c);
    else
      compute<uint8_t>(c);
  }

 private:
  template <class T>
  void compute(const RunContext& c) const {
    const Shape& xs = c.in(0).shape;
    const Window w = slide(window_, c.node(), xs, kernel_of(window_, c.node(), xs), 1);
    const int64_t channels = xs.back(), in_size = w.in_size() * channels, out_size = w.out_size() * channels;
    const int last = w.rank() - 1;
    const int64_t in_w = w.in[last], out_w = w.out[last];
    c.pool().parallel_for(
        xs[0], 0.3 * static_cast<double>(out_size * w.kernel_size()), [&](int64_t begin, int64_t end) {
          for (int64_t n = begin; n < end; ++n) {
            const T* in = c.data<T>(0) + n * in_size;
            T* out = c.out_data<T>(0) + n * out_size;
            std::fill_n(out, out_size, std::numeric_limits<T>::lowest());
            for_each_row(w, [&](int64_t o, int64_t i, int64_t) {
              for (int64_t kw = 0; kw < w.kernel[last]; ++kw) {
                int64_t first, until;
                w.valid(last, kw, first, until);
                for (int64_t j = first; j < until; ++j) {
                  const T* from = in + (i * in_w + j * w.stride[last] + kw * w.dilation[last] - w.pad[last]) * channels;
                  T* to = out + (o * out_w + j) * channels;
                  for (int64_t k = 0; k < channels; ++k) to[k] = std::max(to[k], from[k]);
                }
              }
            });
          }
        });
  }

  WindowAttributes window_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(nhwc_max_pool) {
  r.add({.name = "NhwcMaxPool", .domain = "com.microsoft", .make = make_kernel<NhwcMaxPool>});
}
