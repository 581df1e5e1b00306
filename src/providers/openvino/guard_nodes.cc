#include "providers/openvino/guard.h"

namespace epona::openvino {
namespace {

/// Adds nodes behind a graph. Reductions are over all axes and give scalars: the same in every opset, and free of
/// OpenVINO's fault with constants that follow them (known_wrong.cc).
class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph), opset_(graph.nodes.empty() ? 17 : graph.nodes.front().opset) {
    if (auto it = graph.opsets.find(""); it != graph.opsets.end()) opset_ = it->second;
  }

  ValueId node(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    Node made;
    ValueId output = graph_.add_value(graph_.unique_name(cat("epona_guard_", op)));
    made.name = graph_.values[output].name;
    made.op = op;
    made.opset = opset_;
    made.inputs = std::move(inputs);
    made.outputs = {output};
    made.attributes = std::move(attributes);
    graph_.add_node(std::move(made));
    return output;
  }
  ValueId list(std::initializer_list<int64_t> values) {
    return graph_.add_constant(
        graph_.unique_name("epona_guard_list"),
        Tensor::of<int64_t>(Shape{static_cast<int64_t>(values.size())}, {values.begin(), values.size()}));
  }
  ValueId number(int64_t value) {
    return graph_.add_constant(graph_.unique_name("epona_guard_number"), Tensor::scalar<int64_t>(value));
  }
  ValueId zero_like(ValueId value) {
    if (DataType type = graph_.values[value].type.elem; type == DataType::int64) return number(0);
    return cast(number(0), graph_.values[value].type.elem);
  }
  ValueId cast(ValueId value, DataType type) { return node("Cast", {value}, {{"to", static_cast<int64_t>(type)}}); }
  ValueId largest(ValueId value) { return node("ReduceMax", {value}, {{"keepdims", int64_t{0}}}); }
  ValueId smallest(ValueId value) { return node("ReduceMin", {value}, {{"keepdims", int64_t{0}}}); }
  ValueId any(ValueId flags) { return largest(cast(flags, DataType::int32)); }
  ValueId is_not(ValueId flags) { return node("Not", {flags}); }
  ValueId dim(ValueId value, int64_t axis) { return node("Gather", {node("Shape", {value}), number(axis)}); }

  /// Not 0 where the guard is violated, as a scalar of int32.
  ValueId flag(const Guard& guard) {
    ValueId value = guard.value;
    switch (guard.kind) {
      case Guard::Kind::finite:
      case Guard::Kind::number:
      case Guard::Kind::mask:
        return any(node("IsNaN", {value}));
      case Guard::Kind::nonzero: {
        ValueId least = smallest(node("Abs", {value}));
        return any(is_not(node("Less", {zero_like(value), least})));
      }
      case Guard::Kind::positive:
        return any(is_not(node("Less", {zero_like(value), smallest(value)})));
      case Guard::Kind::not_negative:
        return any(node("Less", {smallest(value), zero_like(value)}));
      case Guard::Kind::filled:
        return any(node("Less", {dim(value, guard.axis), number(1)}));
      case Guard::Kind::index:
      case Guard::Kind::position: {
        ValueId count = dim(guard.data, guard.axis);
        ValueId low = guard.kind == Guard::Kind::position ? number(0) : node("Neg", {count});
        ValueId above = is_not(node("Less", {cast(largest(value), DataType::int64), count}));
        return any(node("Or", {above, node("Less", {cast(smallest(value), DataType::int64), low})}));
      }
      case Guard::Kind::coordinates: {
        // Behind the batch dims, as many dims of the data as a row of coordinates has.
        ValueId width = node("Gather", {node("Shape", {value}), list({-1})});
        ValueId from = list({guard.axis});
        ValueId counts = node("Slice", {node("Shape", {guard.data}), from, node("Add", {from, width})});
        ValueId wide = cast(value, DataType::int64);
        ValueId above = is_not(node("Less", {wide, counts}));
        return any(node("Or", {above, node("Less", {wide, node("Neg", {counts})})}));
      }
    }
    return kNone;
  }

 private:
  Graph& graph_;
  int opset_;
};

}  // namespace

Graph add_guards(const Graph& graph, const std::vector<Guard>& guards) {
  Graph guarded = graph;
  if (guards.empty()) return guarded;
  Builder builder(guarded);
  ValueId one = builder.list({1});
  std::vector<ValueId> flags;
  flags.reserve(guards.size());
  for (const Guard& guard : guards) flags.push_back(builder.node("Reshape", {builder.flag(guard), one}));
  ValueId all = flags[0];
  if (flags.size() > 1) all = builder.node("Concat", flags, {{"axis", int64_t{0}}});
  guarded.values[all].type = Type::tensor(DataType::int32, Shape{static_cast<int64_t>(guards.size())});
  guarded.outputs.push_back(all);
  return guarded;
}

}  // namespace epona::openvino
