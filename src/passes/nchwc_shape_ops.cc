#include <algorithm>

#include "passes/nchwc.h"
#include "passes/nchwc_rewriter.h"

namespace epona {

bool NchwcRewriter::concat(const Node& node) {
  const auto* attribute = graph_.attribute<int64_t>(node, "axis");
  const Blocked* lead = nullptr;
  for (ValueId id : node.inputs)
    if (const Blocked* b = find(id); b && (!lead || !b->plain_exists)) lead = b;
  if (!attribute || !lead || lead->plain_exists) return false;
  const int rank = lead->rank;
  const int64_t axis = *attribute + (*attribute < 0 ? rank : 0);
  if (axis < 0 || axis >= rank) return false;
  Grid grid = lead->grid;
  std::vector<int64_t> channels;
  std::vector<ValueId> operands;
  for (ValueId id : node.inputs) {
    if (id == kNone) return false;
    if (!find(id)) {
      const auto& shape = graph_.values[id].type.shape;
      if (graph_.constant(id) || !shape || static_cast<int>(shape->size()) != rank || !(*shape)[1].known())
        return false;
      channels.push_back((*shape)[1].value);
    } else {
      channels.push_back(find(id)->channels);
      if (find(id)->rank != rank) return false;
    }
    if (axis != 1 && channels.back() != channels.front()) return false;
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Blocked* b = make_blocked(node.inputs[i], channels[i]);
    if (!b) return false;
    operands.push_back(b->value);
  }
  if (axis != 1) {
    grid[axis == 0 ? 0 : axis - 1] = cat('v', node.outputs[0], '.', axis);
    Node copy = node;
    copy.inputs = operands;
    copy.attributes["axis"] = axis;
    emit(std::move(copy), node.outputs[0], channels[0], std::move(grid));
    return true;
  }
  int64_t total = 0;
  bool whole = true;
  for (size_t i = 0; i < channels.size(); ++i) {
    total += channels[i];
    whole &= i + 1 == channels.size() || channels[i] % kChannelBlock == 0;
  }
  Node copy = whole ? node : internal_copy(node, "ConcatNchwc");
  copy.inputs = operands;
  if (whole)
    copy.attributes["axis"] = int64_t{1};
  else
    copy.attributes["channels"] = channels;
  emit(std::move(copy), node.outputs[0], total, std::move(grid));
  return true;
}

/// The dims of the old value from those of the blocked one: no reorder for the sake of its shape.
bool NchwcRewriter::shape(const Node& node) {
  const Blocked* x = find(node.inputs[0]);
  if (!x || x->plain_exists) return false;
  Node copy = internal_copy(node, "ShapeNchwc");
  copy.inputs = {x->value};
  copy.outputs = node.outputs;
  copy.attributes["channels"] = x->channels;
  nodes_.push_back(std::move(copy));
  return true;
}

}  // namespace epona
