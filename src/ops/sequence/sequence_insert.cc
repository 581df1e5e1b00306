#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/sequence/sequence_util.h"

namespace epona {
namespace {

/// A position in a list of `size` items, from the end when negative.
int64_t position(const RunContext& c, int input, int64_t size, int64_t last) {
  int64_t at = one_int(c, c.in(input), "the position");
  if (at < -size || at > last) c.refuse("position ", at, " is out of range [", -size, ",", last, "]");
  return at < 0 ? at + size : at;
}

/// SequenceInsert: a copy of the sequence with a tensor put in at a position (at the end without one).
class SequenceInsert final : public Kernel {
 public:
  explicit SequenceInsert(const NodeInfo&) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const std::vector<RuntimeValue>& old = sequence_items(c, 0);
    DataType element = c.value(0).element, type = c.in(1).type;
    if (!old.empty()) element = old[0].tensor.type;
    if (element != DataType::undefined && element != type)
      c.refuse("a tensor of ", type, " does not go into a sequence of ", element);
    int64_t size = static_cast<int64_t>(old.size()), at = c.has(2) ? position(c, 2, size, size) : size;
    std::vector<RuntimeValue> items;
    items.reserve(old.size() + 1);
    items.insert(items.end(), old.begin(), old.begin() + at);
    items.push_back(keep(c.value(1)));
    items.insert(items.end(), old.begin() + at, old.end());
    c.set(0, RuntimeValue::sequence(type, std::move(items)));
  }
};

/// SequenceErase: a copy of the sequence without the item at a position (the last one by default).
class SequenceErase final : public Kernel {
 public:
  explicit SequenceErase(const NodeInfo&) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    std::vector<RuntimeValue> items = sequence_items(c, 0);
    int64_t size = static_cast<int64_t>(items.size());
    if (size == 0) c.refuse("the sequence is empty");
    items.erase(items.begin() + (c.has(1) ? position(c, 1, size, size - 1) : size - 1));
    c.set(0, RuntimeValue::sequence(c.value(0).element, std::move(items)));
  }
};

/// SequenceAt: the item at a position.
class SequenceAt final : public Kernel {
 public:
  explicit SequenceAt(const NodeInfo&) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const std::vector<RuntimeValue>& items = sequence_items(c, 0);
    int64_t size = static_cast<int64_t>(items.size());
    c.set(0, hand_out(items[static_cast<size_t>(position(c, 1, size, size - 1))]));
  }
};

/// SequenceLength: the number of items.
class SequenceLength final : public Kernel {
 public:
  explicit SequenceLength(const NodeInfo&) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    *c.allocate(0, {}, DataType::int64).as<int64_t>() = static_cast<int64_t>(sequence_items(c, 0).size());
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(sequence_insert) {
  r.add({.name = "SequenceInsert", .since = 11, .make = make_kernel<SequenceInsert>, .dynamic = true});
  r.add({.name = "SequenceErase", .since = 11, .make = make_kernel<SequenceErase>, .dynamic = true});
  r.add({.name = "SequenceAt", .since = 11, .make = make_kernel<SequenceAt>, .dynamic = true});
  r.add({.name = "SequenceLength", .since = 11, .make = make_kernel<SequenceLength>, .dynamic = true});
}
