#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Tile: the input repeated along each axis. Opset 1 had the inputs `tiles` and `axis` instead of `repeats`.
class Tile final : public Kernel {
 public:
  explicit Tile(const NodeInfo& info) : old_(info.opset() < 6) {}
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    if (old_) {
      const Tensor *tiles = c.value(1), *axis = c.value(2);
      if (!tiles || !axis) c.refuse("tiles and axis must be given");
      int64_t n = scalar(c, *tiles);
      if (n < 0) c.refuse("tiles is negative");
      int i = resolve_axis(c, scalar(c, *axis), out.rank());
      out[i] = checked_mul(out[i], n);
    } else {
      std::vector<int64_t> repeats = c.ints(1);
      if (static_cast<int>(repeats.size()) != out.rank())
        c.refuse("repeats has ", repeats.size(), " numbers for an input of shape ", out);
      for (int i = 0; i < out.rank(); ++i) {
        if (repeats[i] < 0) c.refuse("repeats has a negative number");
        out[i] = checked_mul(out[i], repeats[i]);
      }
    }
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    if (out.size() == 0) return;
    StridedCopy copy(in.type);
    int64_t in_stride = in.size(), out_stride = out.size();
    for (int i = 0; i < in.shape.rank(); ++i) {
      int64_t n = in.shape[i];
      in_stride /= n;
      out_stride /= out.shape[i];
      copy.dim(out.shape[i] / n, 0, out_stride * n);
      copy.dim(n, in_stride, out_stride);
    }
    copy.run(c.pool(), in.data, 0, out.data, 0);
  }

 private:
  static int64_t scalar(const ShapeContext& c, const Tensor& tensor) {
    if (tensor.size() != 1) c.refuse("tiles and axis must be one number each");
    if (tensor.type == DataType::float32) return static_cast<int64_t>(*tensor.as<float>());
    return one_int(c, tensor, "tiles and axis");
  }
  bool old_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(tile) { r.add({.name = "Tile", .since = 1, .make = make_kernel<Tile>, .shape_inputs = 6}); }
