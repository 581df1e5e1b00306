#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

class Fuser : PatternMatcher {
 public:
  using PatternMatcher::PatternMatcher;
  int run() {
    return fuse_each("ConvInteger", [this](NodeId id) { return fuse(id); });
  }

 private:
  bool has_dims(ValueId id, DataType type, size_t rank, auto&& expected) const {
    if (id == kNone) return false;
    const Type& t = graph_.values[id].type;
    if (t.elem != type || !t.shape || t.shape->size() > rank) return false;
    for (size_t d = 0; d < t.shape->size(); ++d)
      if ((*t.shape)[d].value != expected(d)) return false;
    return true;
  }
  bool is_scalar(ValueId id, size_t rank) const {
    return has_dims(id, DataType::float32, rank, [](size_t) { return int64_t{1}; });
  }
  /// One int32 for each of the channels, broadcast over the output.
  bool is_bias(ValueId id, size_t rank, int64_t channels) const {
    return id != kNone && graph_.values[id].type.shape && graph_.values[id].type.shape->size() == rank &&
           has_dims(id, DataType::int32, rank, [&](size_t d) { return d == 1 ? channels : 1; });
  }

  bool fuse(NodeId id) {
    const Node& conv = graph_.nodes[id];
    const auto& w = graph_.values[conv.inputs[1]].type.shape;
    if (!w || w->size() < 3 || !(*w)[0].known()) return false;
    ValueId sums = conv.outputs[0], bias = kNone;
    const NodeId add = only_reader(sums, "Add");
    if (add != kNone) {
      bias = other_input(graph_.nodes[add], sums);
      if (!is_bias(bias, w->size(), (*w)[0].value)) return false;
      sums = graph_.nodes[add].outputs[0];
    }
    const NodeId cast = only_reader(sums, "Cast");
    const int64_t* to = cast == kNone ? nullptr : graph_.attribute<int64_t>(graph_.nodes[cast], "to");
    if (!to || *to != static_cast<int64_t>(DataType::float32)) return false;
    const ValueId floats = graph_.nodes[cast].outputs[0];
    const NodeId mul = only_reader(floats, "Mul");
    if (mul == kNone) return false;
    const ValueId factor = other_input(graph_.nodes[mul], floats);
    const Node* scales = factor == kNone ? nullptr : producer_of(graph_, factor, "Mul");
    if (!scales || !is_scalar(scales->inputs[0], w->size()) || !is_scalar(scales->inputs[1], w->size())) return false;
    const auto zero = [&](size_t i) { return conv.inputs.size() > i ? conv.inputs[i] : kNone; };
    Node fused = conv;
    fused.op = "ConvIntegerToFloat";
    fused.domain = "epona";
    fused.inputs = {conv.inputs[0], conv.inputs[1], zero(2), zero(3), bias, scales->inputs[0], scales->inputs[1]};
    fused.outputs = graph_.nodes[mul].outputs;
    graph_.remove_node(id);
    graph_.remove_node(cast);
    if (add != kNone) graph_.remove_node(add);
    graph_.nodes[mul] = std::move(fused);
    return true;
  }
};

}  // namespace

/// The convolution of a dynamically quantised image, maybe with a 32-bit bias, cast to float and scaled by the product of
/// two scales, becomes one node.
int fuse_dynamic_conv(Graph& graph, const PassContext&) { return Fuser(graph).run(); }

}  // namespace epona
