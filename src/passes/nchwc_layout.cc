#include <algorithm>
#include <string_view>

#include "passes/activation_attribute.h"
#include "passes/nchwc.h"
#include "passes/nchwc_rewriter.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {

Node internal_copy(const Node& node, const char* op) {
  Node copy;
  copy.name = node.name;
  copy.op = op;
  copy.domain = "epona";
  copy.attributes = node.attributes;
  return copy;
}

int NchwcRewriter::run() {
  const bool any = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                               [](const Node& node) { return !node.removed && node.is("Conv"); });
  if (!any) return 0;
  for (const Node& node : graph_.nodes) {
    if (node.removed) continue;
    if (convert(node)) {
      ++converted_;
      continue;
    }
    for (const auto* list : {&node.inputs, &node.captures})
      for (ValueId id : *list)
        if (id != kNone) make_plain(id);
    nodes_.push_back(node);
  }
  if (converted_ == 0) return 0;
  for (ValueId id : graph_.outputs) make_plain(id);
  rebuild();
  return converted_;
}

void NchwcRewriter::rebuild() {
  for (Value& value : graph_.values) value.producer = kNone;
  graph_.nodes.clear();
  for (Node& node : nodes_)
    if (!node.removed) graph_.add_node(std::move(node));
  remove_dead_nodes(graph_);
}

bool NchwcRewriter::is_float_image(ValueId id) const {
  if (id == kNone) return false;
  const Type& type = graph_.values[id].type;
  return type.is_tensor() && type.elem == DataType::float32;
}

NchwcRewriter::Blocked* NchwcRewriter::find(ValueId id) {
  auto it = blocked_.find(id);
  return it == blocked_.end() ? nullptr : &it->second;
}

NchwcRewriter::Grid NchwcRewriter::grid_of(ValueId id) {
  if (Blocked* b = find(id)) return b->grid;
  Grid grid;
  const Type& type = graph_.values[id].type;
  const size_t rank = type.shape ? type.shape->size() : 0;
  for (size_t d = 0; d < rank; ++d) {
    if (d == 1) continue;
    const Dim& dim = (*type.shape)[d];
    grid.push_back(dim.known() ? std::to_string(dim.value) : cat('v', id, '.', d));
  }
  return grid;
}

ValueId NchwcRewriter::add_blocked_value(ValueId y, int64_t channels, int rank) {
  const Value& old = graph_.values[y];
  Type type = Type::tensor(DataType::float32);
  if (old.type.shape && static_cast<int>(old.type.shape->size()) == rank) {
    type.shape = old.type.shape;
    (*type.shape)[1] = Dim{channel_blocks(channels), ""};
    type.shape->push_back(Dim{kChannelBlock, ""});
  }
  return graph_.add_value(graph_.unique_name(old.name + "_nchwc"), std::move(type));
}

Node& NchwcRewriter::emit(Node node, ValueId y, int64_t channels, Grid grid) {
  // A size that shape inference knows beats one that is derived.
  const auto& shape = graph_.values[y].type.shape;
  const int rank = static_cast<int>(grid.size()) + 1;
  for (size_t d = 0, g = 0; shape && static_cast<int>(shape->size()) == rank && d < shape->size(); ++d) {
    if (d == 1) continue;
    if ((*shape)[d].known()) grid[g] = std::to_string((*shape)[d].value);
    ++g;
  }
  Blocked b;
  b.value = add_blocked_value(y, channels, rank);
  b.channels = channels;
  b.rank = rank;
  b.grid = std::move(grid);
  b.made_by = static_cast<int>(nodes_.size());
  node.outputs = {b.value};
  blocked_[y] = std::move(b);
  nodes_.push_back(std::move(node));
  return nodes_.back();
}

void NchwcRewriter::absorb(ValueId x, ValueId y) {
  Blocked b = blocked_.at(x);
  b.plain_exists = false;
  blocked_.erase(x);
  blocked_[y] = std::move(b);
}

NchwcRewriter::Blocked* NchwcRewriter::make_blocked(ValueId id, int64_t channels) {
  if (Blocked* b = find(id)) return b->channels == channels ? b : nullptr;
  if (!is_float_image(id)) return nullptr;
  const auto& shape = graph_.values[id].type.shape;
  if (!shape || shape->size() < 3 || shape->size() > 4) return nullptr;
  Node node;
  node.op = "ReorderToNchwc";
  node.domain = "epona";
  node.name = graph_.values[id].name + "_to_nchwc";
  node.inputs = {id};
  emit(std::move(node), id, channels, grid_of(id));
  Blocked& b = blocked_.at(id);
  b.plain_exists = true;
  return &b;
}

void NchwcRewriter::make_plain(ValueId id) {
  Blocked* b = find(id);
  if (!b || b->plain_exists) return;
  Node node;
  node.op = "ReorderFromNchwc";
  node.domain = "epona";
  node.name = graph_.values[id].name + "_from_nchwc";
  node.inputs = {b->value};
  node.outputs = {id};
  node.attributes["channels"] = b->channels;
  nodes_.push_back(std::move(node));
  b->plain_exists = true;
}

bool NchwcRewriter::convert(const Node& node) {
  if (node.outputs.empty() || node.outputs[0] == kNone || node.inputs.empty() || !is_float_image(node.inputs[0]))
    return false;
  if (node.is("Conv")) return convolution(node);
  // Everything else follows its inputs.
  const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return find(id) != nullptr; });
  if (!any) return false;
  if (node.domain.empty()) {
    if (node.op == "MaxPool" || node.op == "AveragePool") return pool(node);
    if (node.op == "GlobalAveragePool" || node.op == "GlobalMaxPool" || node.op == "ReduceMean")
      return global_pool(node);
    if (node.op == "BatchNormalization") return batch_norm(node);
    if (node.op == "ConvTranspose") return transposed_convolution(node);
    if (node.op == "Concat") return concat(node);
    if (node.op == "Resize") return resize(node);
    if (node.op == "Shape") return shape(node);
  }
  return unary(node) || element_wise(node);
}

int nchwc_layout(Graph& graph, const PassContext&) { return NchwcRewriter(graph).run(); }

}  // namespace epona
