#include "ops/broadcast.h"

namespace epona {

bool broadcast_into(Shape& shape, const Shape& other) {
  while (shape.rank() < other.rank()) shape.insert(0, 1);
  int shift = shape.rank() - other.rank();
  for (int d = 0; d < other.rank(); ++d) {
    int64_t& mine = shape[d + shift];
    if (mine == other[d] || other[d] == 1) continue;
    if (mine != 1) return false;
    mine = other[d];
  }
  return true;
}

Shape broadcast_inputs(const ShapeContext& c, int first, int count) {
  Shape shape = c.in(first);
  for (int i = first + 1; i < first + count; ++i) {
    Shape grown = shape;
    if (!broadcast_into(grown, c.in(i)))
      c.refuse("input ", i, " of shape ", c.in(i), " does not broadcast with ", shape);
    shape = std::move(grown);
  }
  return shape;
}

bool broadcasts_to(const Shape& shape, const Shape& target) {
  Shape grown = target;
  return broadcast_into(grown, shape) && grown == target;
}

LegacyBroadcast::LegacyBroadcast(const NodeInfo& info) {
  if (info.opset() >= 7) return;
  const bool slope = info.node().op == "PRelu";
  active_ = slope || (info.attr("broadcast", 0) != 0 && info.has_attr("axis"));
  if (active_) axis_ = slope ? 1 : info.attr("axis", -1);
}

Shape LegacyBroadcast::second(const Shape& first, const Shape& second) const {
  Shape padded = second;
  if (!active_) return padded;
  const int64_t axis = axis_ < 0 ? axis_ + first.rank() : axis_;
  while (axis + second.rank() > 0 && axis + padded.rank() < first.rank()) padded.push_back(1);
  return padded;
}

void collapse_broadcast(const Shape& out, const Shape* const* in, int count, Shape& dims, Shape* strides) {
  dims.resize(0);
  for (int i = 0; i < count; ++i) strides[i].resize(0);
  // Outermost first, each dim merged into the one before it where every operand steps through both as through one.
  for (int d = 0; d < out.rank(); ++d) {
    if (out[d] == 1) continue;
    bool merge = dims.rank() > 0;
    for (int i = 0; i < count; ++i) {
      const Shape& shape = *in[i];
      int own = d - (out.rank() - shape.rank());
      bool moves = own >= 0 && shape[own] != 1;
      int64_t stride = moves ? shape.size(own + 1, shape.rank()) : 0;
      strides[i].push_back(stride);
      int at = strides[i].rank() - 1;
      if (merge && strides[i][at - 1] != stride * out[d]) merge = false;
    }
    if (!merge) {
      dims.push_back(out[d]);
      continue;
    }
    dims[dims.rank() - 1] *= out[d];
    for (int i = 0; i < count; ++i) strides[i].erase(strides[i].rank() - 2);
  }
  if (dims.rank() == 0) {
    dims.push_back(1);
    for (int i = 0; i < count; ++i) strides[i].push_back(0);
  }
}

}  // namespace epona
