#include "kernels/conv.h"
#include "kernels/reorder.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// ReorderToNchwc(x): [N, C, spatial...] -> [N, ceil(C / 16), spatial..., 16].
class ReorderToNchwc final : public Kernel {
 public:
  explicit ReorderToNchwc(const NodeInfo&) {}

  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    y[1] = channel_blocks(y[1]);
    y.push_back(kChannelBlock);
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    reorder_to_nchwc(c.data<float>(0), c.out_data<float>(0), x[0], x[1], x.size(2, x.rank()), c.pool());
  }
};

/// ReorderFromNchwc(x, channels): the inverse.
class ReorderFromNchwc final : public Kernel {
 public:
  explicit ReorderFromNchwc(const NodeInfo& info) : channels_(info.attr("channels", 0)) {}

  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    if (channel_blocks(channels_) != y[1]) c.refuse("input ", y, " does not hold ", channels_, " channels");
    y[1] = channels_;
    y.resize(y.rank() - 1);
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    const Shape& y = c.out(0).shape;
    reorder_from_nchwc(c.data<float>(0), c.out_data<float>(0), y[0], y[1], y.size(2, y.rank()), c.pool());
  }

 private:
  int64_t channels_;
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(reorder_nchwc) {
  r.add_internal({.name = "ReorderToNchwc", .make = make_kernel<ReorderToNchwc>});
  r.add_internal({.name = "ReorderFromNchwc", .make = make_kernel<ReorderFromNchwc>});
}
