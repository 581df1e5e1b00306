#include <algorithm>
#include <string_view>

#include "kernels/reorder.h"
#include "passes/activation_attribute.h"
#include "passes/nchwc.h"
#include "passes/nchwc_rewriter.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

constexpr std::string_view kBinary[] = {"Add", "Sub", "Mul", "Div", "Pow", "PRelu", "Max", "Min", "Sum", "Mean"};
constexpr std::string_view kUnary[] = {"Abs", "Neg", "Exp", "Log",   "Sqrt", "Reciprocal", "Floor",   "Ceil",
                                       "Erf", "Sin", "Cos", "Round", "Sign", "Softplus",   "Identity"};

template <size_t N>
bool is_one_of(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool takes_activation(const Graph& graph, const Node& conv) {
  return conv.domain == "epona" && conv.op == "ConvNchwc" && !graph.attribute<std::string>(conv, "activation");
}

}  // namespace

bool NchwcRewriter::unary(const Node& node) {
  Blocked* x = find(node.inputs[0]);
  const auto activation = activation_of(graph_, node);
  if (!x || (!activation && !(node.domain.empty() && is_one_of(kUnary, node.op)))) return false;
  if (activation && x->made_by >= 0 && !x->plain_exists && read_once(graph_, readers_, node.inputs[0]) &&
      takes_activation(graph_, nodes_[x->made_by])) {
    set_activation(nodes_[x->made_by], *activation);
    absorb(node.inputs[0], node.outputs[0]);
    return true;
  }
  Node copy = node;
  copy.inputs[0] = x->value;
  const Grid grid = x->grid;
  const int64_t channels = x->channels;
  emit(std::move(copy), node.outputs[0], channels, grid);
  return true;
}

/// conv + image becomes the residual of the convolution, wherever that may still move to.
bool NchwcRewriter::fuse_residual(const Node& node) {
  if ((node.op != "Add" && node.op != "Sum") || node.inputs.size() != 2 || node.inputs[0] == node.inputs[1])
    return false;
  Blocked* sides[2] = {find(node.inputs[0]), find(node.inputs[1])};
  if (!sides[0] || !sides[1] || sides[0]->channels != sides[1]->channels || sides[0]->grid != sides[1]->grid)
    return false;
  // The convolution that comes last has the other side ready.
  int first = sides[0]->made_by > sides[1]->made_by ? 0 : 1;
  for (int attempt = 0; attempt < 2; ++attempt, first = 1 - first) {
    Blocked* conv_side = sides[first];
    const ValueId conv_value = node.inputs[first];
    if (conv_side->made_by < 0 || conv_side->plain_exists || !read_once(graph_, readers_, conv_value)) continue;
    Node& conv = nodes_[conv_side->made_by];
    if (!conv.is("ConvNchwc", "epona") || conv.inputs.size() > 3) continue;
    Node moved = conv;
    moved.inputs.resize(4, kNone);
    moved.inputs[3] = sides[1 - first]->value;
    if (graph_.attribute<std::string>(moved, "activation")) moved.op = "ConvNchwcThenAdd";
    if (sides[1 - first]->made_by < conv_side->made_by) {
      conv = std::move(moved);
    } else {
      conv.removed = true;
      conv.outputs.clear();
      conv_side->made_by = static_cast<int>(nodes_.size());
      nodes_.push_back(std::move(moved));
    }
    absorb(conv_value, node.outputs[0]);
    return true;
  }
  return false;
}

ValueId NchwcRewriter::block_constant(const Tensor& tensor, int rank, int64_t channels, const std::string& name) {
  Shape dims = tensor.shape;  // aligned to [N, C, spatial...]
  while (dims.rank() < rank) dims.insert(0, 1);
  if (dims[1] != channels && dims[1] != 1) return kNone;
  Shape blocked = dims;
  if (dims[1] == 1) {
    blocked.push_back(1);
    Tensor view = tensor.clone();
    view.shape = blocked;
    return graph_.add_constant(name + "_nchwc", std::move(view));
  }
  blocked[1] = channel_blocks(channels);
  blocked.push_back(kChannelBlock);
  Tensor out = Tensor::allocate(DataType::float32, blocked);
  ThreadPoolOptions one;
  one.threads = 1;
  ThreadPool pool(one);
  reorder_to_nchwc(tensor.as<float>(), out.as<float>(), dims[0], channels, dims.size(2, rank), pool);
  return graph_.add_constant(name + "_nchwc", std::move(out));
}

/// The operand of a blocked element-wise operation that stands for `id`; kNone when there is none.
ValueId NchwcRewriter::blocked_operand(ValueId id, int rank, int64_t channels) {
  if (id == kNone) return kNone;
  if (Blocked* b = find(id)) return b->rank == rank && b->channels == channels ? b->value : kNone;
  const Value& value = graph_.values[id];
  if (!is_float_image(id) || !value.type.shape || static_cast<int>(value.type.shape->size()) > rank) return kNone;
  const auto shape = value.type.static_shape();
  // One element broadcasts in any layout, unless its rank counts.
  if (shape && shape->size() == 1 && shape->rank() <= 1) return id;
  if (const Tensor* tensor = graph_.constant(id)) {
    return tensor->data ? block_constant(*tensor, rank, channels, value.name) : kNone;
  }
  const auto& dims = *value.type.shape;
  if (static_cast<int>(dims.size()) != rank || dims[1].value != channels) return kNone;
  Blocked* b = make_blocked(id, channels);
  return b ? b->value : kNone;
}

bool NchwcRewriter::element_wise(const Node& node) {
  if (!node.domain.empty() || !is_one_of(kBinary, node.op) || !is_float_image(node.outputs[0])) return false;
  // Worth it only if it saves a reorder.
  const Blocked* lead = nullptr;
  bool saves = false;
  size_t images = 0;
  for (ValueId id : node.inputs) {
    const Blocked* b = find(id);
    if (!b) continue;
    ++images;
    saves |= !b->plain_exists;
    if (!lead) lead = b;
    if (b->rank != lead->rank || b->channels != lead->channels) return false;
  }
  if (!lead || (!saves && images < node.inputs.size())) return false;
  if (fuse_residual(node)) return true;
  const int rank = lead->rank;
  const int64_t channels = lead->channels;
  Grid grid = lead->grid;
  Node copy = node;
  for (size_t i = 0; i < copy.inputs.size(); ++i) {
    const ValueId operand = blocked_operand(node.inputs[i], rank, channels);
    if (operand == kNone) return false;
    copy.inputs[i] = operand;
    const Blocked* b = find(node.inputs[i]);
    if (!b) continue;
    for (size_t d = 0; d < grid.size(); ++d) {
      if (grid[d] == b->grid[d] || b->grid[d] == "1") continue;
      grid[d] = grid[d] == "1" ? b->grid[d] : cat('v', node.outputs[0], '.', d);
    }
  }
  // A constant enlarges a grid only where its sizes are 1.
  for (ValueId id : node.inputs) {
    const Tensor* tensor = find(id) || id == kNone ? nullptr : graph_.constant(id);
    if (!tensor) continue;
    for (int d = 0; d < tensor->shape.rank(); ++d) {
      const int axis = d + rank - tensor->shape.rank();
      if (axis == 1 || tensor->shape[d] == 1) continue;
      std::string& size = grid[axis == 0 ? 0 : axis - 1];
      if (size != std::to_string(tensor->shape[d])) size = cat('v', node.outputs[0], '.', axis);
    }
  }
  emit(std::move(copy), node.outputs[0], channels, std::move(grid));
  return true;
}

}  // namespace epona
