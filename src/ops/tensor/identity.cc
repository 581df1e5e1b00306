#include "ops/registry.h"
#include "ops/tensor/alias_util.h"

namespace epona {
namespace {

/// Identity, of tensors and (from opsets 14 and 16) sequences and optionals.
class Identity final : public Kernel {
 public:
  explicit Identity(const NodeInfo&) {}
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override { copy_through(c); }
};

}  // namespace
}  // namespace epona

EPONA_OPS(identity) { r.add({.name = "Identity", .since = 1, .make = make_kernel<Identity>, .alias = 0}); }
