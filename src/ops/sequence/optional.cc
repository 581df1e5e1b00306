#include "ops/registry.h"
#include "ops/sequence/sequence_util.h"

namespace epona {
namespace {

/// Optional: the input as an optional, or an empty one. At run time an optional is its content, or nothing.
class Optional final : public Kernel {
 public:
  explicit Optional(const NodeInfo&) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override { c.set(0, c.has(0) ? keep(c.value(0)) : RuntimeValue()); }
};

/// OptionalHasElement: whether there is content; a tensor or sequence (opset 18) counts as content.
class OptionalHasElement final : public Kernel {
 public:
  explicit OptionalHasElement(const NodeInfo&) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    bool has = c.has(0) && c.value(0).kind != RuntimeValue::Kind::none;
    *c.allocate(0, {}, DataType::boolean).as<bool>() = has;
  }
};

/// OptionalGetElement: the content; refuses an empty optional.
class OptionalGetElement final : public Kernel {
 public:
  explicit OptionalGetElement(const NodeInfo&) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    if (c.value(0).kind == RuntimeValue::Kind::none) c.refuse("the optional is empty");
    c.set(0, keep(c.value(0)));
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(optional) {
  r.add({.name = "Optional", .since = 15, .make = make_kernel<Optional>, .dynamic = true});
  r.add({.name = "OptionalHasElement", .since = 15, .make = make_kernel<OptionalHasElement>, .dynamic = true});
  r.add({.name = "OptionalGetElement", .since = 15, .make = make_kernel<OptionalGetElement>, .dynamic = true});
}
