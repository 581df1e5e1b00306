#include "kernels/pool.h"

#include "ops/nn/window.h"
#include "passes/nchwc.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// MaxPoolNchwc(x), AveragePoolNchwc(x): the pools of ONNX, with their attributes, on an image in NCHW16c of one or two
/// spatial dims.
template <bool kMax>
class PoolNchwc final : public Kernel {
 public:
  explicit PoolNchwc(const NodeInfo& info)
      : window_(info), kernel_(window_.kernel), include_pad_(info.attr("count_include_pad", 0) != 0) {}

  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    const Window w = slide(window_, c.node(), y, kernel_);
    for (int d = 0; d < w.rank(); ++d) y[2 + d] = w.out[d];
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    const Window w = slide(window_, c.node(), x, kernel_);
    const Shape2 kernel = Shape2::of(w.kernel, 1), stride = Shape2::of(w.stride, 1),
                 dilation = Shape2::of(w.dilation, 1);
    const Shape2 in = Shape2::of(w.in, 1), out = Shape2::of(w.out, 1);
    const Shape2 pad = Shape2::of(w.pad, 0), pad_end = Shape2::of(w.pad_end, 0);
    Pooling p;
    p.kernel_h = static_cast<int>(kernel.h), p.kernel_w = static_cast<int>(kernel.w);
    p.stride_h = static_cast<int>(stride.h), p.stride_w = static_cast<int>(stride.w);
    p.dilation_h = static_cast<int>(dilation.h), p.dilation_w = static_cast<int>(dilation.w);
    p.planes = x[0] * x[1];
    p.in_h = in.h, p.in_w = in.w, p.out_h = out.h, p.out_w = out.w;
    p.pad_top = pad.h, p.pad_left = pad.w, p.pad_bottom = pad_end.h, p.pad_right = pad_end.w;
    if (kMax)
      max_pool_nchwc(p, c.data<float>(0), c.out_data<float>(0), c.pool());
    else
      average_pool_nchwc(p, include_pad_, c.data<float>(0), c.out_data<float>(0), c.pool());
  }

 private:
  WindowAttributes window_;
  Shape kernel_;
  bool include_pad_;
};

/// GlobalAveragePoolNchwc(x), GlobalMaxPoolNchwc(x): all spatial dims become 1.
template <GlobalPool kKind>
class GlobalPoolNchwc final : public Kernel {
 public:
  explicit GlobalPoolNchwc(const NodeInfo&) {}

  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    for (int d = 2; d < y.rank() - 1; ++d) y[d] = 1;
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    global_pool_nchwc(kKind, x[0] * x[1], x.size(2, x.rank() - 1), c.data<float>(0), c.out_data<float>(0), c.pool());
  }
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(pool_nchwc) {
  r.add_internal({.name = "MaxPoolNchwc", .make = make_kernel<PoolNchwc<true>>});
  r.add_internal({.name = "AveragePoolNchwc", .make = make_kernel<PoolNchwc<false>>});
  r.add_internal({.name = "GlobalAveragePoolNchwc", .make = make_kernel<GlobalPoolNchwc<GlobalPool::average>>});
  r.add_internal({.name = "GlobalMaxPoolNchwc", .make = make_kernel<GlobalPoolNchwc<GlobalPool::max>>});
}
