#include "ops/registry.h"
#include "ops/sequence/sequence_util.h"
#include "ops/type_attribute.h"

namespace epona {
namespace {

/// SequenceConstruct: the inputs as a sequence.
class SequenceConstruct final : public Kernel {
 public:
  explicit SequenceConstruct(const NodeInfo&) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    std::vector<RuntimeValue> items;
    for (int i = 0; i < c.inputs(); ++i) {
      items.push_back(keep(c.value(i)));
      if (items[0].tensor.type != items.back().tensor.type)
        c.refuse("the inputs must be of one type, found ", items[0].tensor.type, " and ", items.back().tensor.type);
    }
    DataType element = items.empty() ? DataType::undefined : items[0].tensor.type;
    c.set(0, RuntimeValue::sequence(element, std::move(items)));
  }
};

/// SequenceEmpty: a sequence without items, of tensors of the given type.
class SequenceEmpty final : public Kernel {
 public:
  explicit SequenceEmpty(const NodeInfo& info) : type_(type_attribute(info, "dtype", DataType::float32)) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override { c.set(0, RuntimeValue::sequence(type_, {})); }

 private:
  DataType type_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(sequence_construct) {
  r.add({.name = "SequenceConstruct", .since = 11, .make = make_kernel<SequenceConstruct>, .dynamic = true});
  r.add({.name = "SequenceEmpty", .since = 11, .make = make_kernel<SequenceEmpty>, .dynamic = true});
}
