#include "ops/registry.h"

namespace epona {
namespace {

/// Size: the number of elements of the input.
class Size final : public Kernel {
 public:
  explicit Size(const NodeInfo&) {}
  void shapes(ShapeContext& c) const override { c.out(0, {}); }
  void run(const RunContext& c) const override { *c.out_data<int64_t>(0) = c.in(0).size(); }
};

}  // namespace
}  // namespace epona

EPONA_OPS(size) { r.add({.name = "Size", .since = 1, .make = make_kernel<Size>, .shape_only = true}); }
