#pragma once
#include <vector>

#include "ops/kernel.h"

namespace epona {

/// The items of a sequence input; refuses any other kind of value.
inline const std::vector<RuntimeValue>& sequence_items(const RunContext& c, int input) {
  const RuntimeValue& value = c.value(input);
  if (value.kind != RuntimeValue::Kind::sequence || !value.items) c.refuse("input ", input, " must be a sequence");
  return *value.items;
}

/// A value to keep in a sequence or optional. The memory of an input tensor is the frame's: it is copied.
inline RuntimeValue keep(const RuntimeValue& value) {
  return value.kind == RuntimeValue::Kind::tensor ? RuntimeValue(value.tensor.clone()) : value;
}

/// An item handed out as an output: it shares the sequence's memory, unless that belongs to the caller of the session.
inline RuntimeValue hand_out(const RuntimeValue& item) { return item.tensor.owner ? item : keep(item); }

}  // namespace epona
