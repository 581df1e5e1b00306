#include "providers/openvino/guard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "providers/openvino/value_range.h"

namespace epona::openvino {
namespace {

using Kind = Guard::Kind;

bool one_of(std::string_view op, std::initializer_list<std::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

/// Whether a constant holds an infinity or NaN. Only small ones are looked at: masks and bounds, not weights.
bool is_infinite(const Tensor& tensor) {
  if (tensor.type != DataType::float32 || !tensor.data || tensor.size() > 1024) return false;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    float element;
    std::memcpy(&element, tensor.as<char>() + 4 * i, 4);  // may lie unaligned
    if (!std::isfinite(element)) return true;
  }
  return false;
}

/// Finds the guards of one graph.
class Search {
 public:
  explicit Search(const Graph& graph)
      : graph_(graph),
        ranges_(value_ranges(graph)),
        consumers_(graph.consumers()),
        lost_(graph.values.size(), kNone),
        taint_(graph.values.size(), Taint::none) {}

  std::vector<Guard> run() {
    find_losses();
    for (ValueId id : graph_.inputs)
      if (is_float(graph_.values[id].type.elem) && (node_ = lost_[id]) != kNone)
        add(is_mask(id, 4) ? Kind::mask : Kind::finite, id,
            cat("; OpenVINO loses NaN and infinities in ", describe(graph_.nodes[lost_[id]])));
    for (size_t id = 0; id < taint_.size(); ++id)
      if (const Tensor* constant = graph_.constant(static_cast<ValueId>(id)); constant && is_infinite(*constant))
        taint_[id] = Taint::infinite;
    for (node_ = 0; node_ < static_cast<NodeId>(graph_.nodes.size()); ++node_) {
      const Node& node = graph_.nodes[node_];
      if (node.removed) continue;
      indices(node);
      divisors(node);
      floats(node);
    }
    return std::move(guards_);
  }

 private:
  enum class Taint { none, infinite, nan };

  void add(Kind kind, ValueId value, std::string text, ValueId data = kNone, int64_t axis = 0) {
    for (const Guard& known : guards_)
      if (known.kind == kind && known.value == value && known.data == data && known.axis == axis) return;
    guards_.push_back({kind, node_, value, data, axis, std::move(text)});
  }

  ValueId in(const Node& node, size_t i) const { return i < node.inputs.size() ? node.inputs[i] : kNone; }

  int64_t attr(const Node& node, std::string_view key, int64_t otherwise) const {
    auto* value = graph_.attribute<int64_t>(node, key);
    return value ? *value : otherwise;
  }

  /// For every value a node that it reaches and in which NaN gets lost, backwards.
  void find_losses() {
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      if (node.removed) continue;
      NodeId loss = loses_nan(graph_, node) ? static_cast<NodeId>(n) : kNone;
      for (ValueId output : node.outputs)
        if (output != kNone && loss == kNone && is_float(graph_.values[output].type.elem)) loss = lost_[output];
      if (loss == kNone) continue;
      for (auto* list : {&node.inputs, &node.captures})
        for (ValueId input : *list)
          if (input != kNone && is_float(graph_.values[input].type.elem)) lost_[input] = loss;
    }
  }

  /// The number of elements along an axis, -1 when unknown.
  int64_t dim(ValueId value, int64_t axis) const {
    const auto& shape = graph_.values[value].type.shape;
    return shape && axis >= 0 && axis < static_cast<int64_t>(shape->size()) ? (*shape)[axis].value : -1;
  }

  void index(const Node& node, Kind kind, ValueId value, ValueId data, int64_t axis) {
    if (value == kNone || data == kNone) return;
    const auto& shape = graph_.values[data].type.shape;
    if (axis < 0 && shape) axis += static_cast<int64_t>(shape->size());
    int64_t count = dim(data, axis);
    const Range& range = ranges_[value];
    if (count > 0 && range.high < static_cast<double>(count) &&
        range.low >= (kind == Kind::position ? 0 : -static_cast<double>(count)))
      return;
    add(kind, value, cat(", which is out of range in ", describe(node), "; OpenVINO does not check it"), data, axis);
  }

  void indices(const Node& node) {
    if (node.is("Gather")) index(node, Kind::index, in(node, 1), in(node, 0), attr(node, "axis", 0));
    if (node.is("RotaryEmbedding")) index(node, Kind::position, in(node, 3), in(node, 1), 0);
    if (node.is("GatherND"))
      add(Kind::coordinates, in(node, 1),
          cat(", which is out of range in ", describe(node), "; OpenVINO does not check it"), in(node, 0),
          attr(node, "batch_dims", 0));
    if (node.is("ArgMax") || node.is("ArgMin")) {
      const auto& shape = graph_.values[in(node, 0)].type.shape;
      int64_t axis = attr(node, "axis", 0);
      if (axis < 0 && shape) axis += static_cast<int64_t>(shape->size());
      if (dim(in(node, 0), axis) <= 0)
        add(Kind::filled, in(node, 0),
            cat(" along the axis that is empty in ", describe(node), "; OpenVINO does not check it"), kNone, axis);
    }
  }

  void divisors(const Node& node) {
    if (!node.is("Div") && !node.is("Mod")) return;
    ValueId value = in(node, 1);
    if (value == kNone || is_float(graph_.values[value].type.elem) || !ranges_[value].has_zero()) return;
    add(Kind::nonzero, value,
        cat(", by which ", describe(node), " would divide integers; OpenVINO gives another result"));
  }

  /// Operands for which an operator makes NaN or an infinity of finite numbers; overflow is not considered.
  void floats(const Node& node) {
    if (node.outputs.empty() || node.outputs[0] == kNone) return;
    ValueId output = node.outputs[0];
    if (!is_float(graph_.values[output].type.elem)) return;
    pass_on(node, output);
    if (lost_[output] == kNone || !node.domain.empty()) return;
    ValueId first = in(node, 0), second = in(node, 1);
    auto source = [&](Kind kind, ValueId value) {
      if (is_masked(output, 4))
        taint_[output] = Taint::nan;
      else
        add(kind, value,
            cat(" in ", describe(node), "; OpenVINO would lose what becomes of it in ",
                describe(graph_.nodes[lost_[output]])));
    };
    if (one_of(node.op, {"Div", "Mod"}) && second != kNone && ranges_[second].has_zero()) source(Kind::nonzero, second);
    if (node.op == "Reciprocal" && ranges_[first].has_zero()) source(Kind::nonzero, first);
    if (node.op == "Log" && !ranges_[first].positive()) source(Kind::positive, first);
    if (node.op == "Sqrt" && !ranges_[first].not_negative()) source(Kind::not_negative, first);
    if (node.op == "Pow" && second != kNone) power(first, ranges_[second], source);
    if (one_of(node.op, {"Acos", "Asin", "Acosh", "Atanh", "ReduceLogSum"})) source(Kind::number, output);
  }

  template <class Source>
  void power(ValueId base, const Range& exponent, Source&& source) {
    bool whole = exponent.low == exponent.high && std::floor(exponent.low) == exponent.low;
    if (whole && exponent.low >= 0) return;
    if (whole) {
      if (ranges_[base].has_zero()) source(Kind::nonzero, base);
    } else if (exponent.low >= 0) {
      if (!ranges_[base].not_negative()) source(Kind::not_negative, base);
    } else if (!ranges_[base].positive()) {
      source(Kind::positive, base);
    }
  }

  /// Whether all that reads a value drops some of its elements soon: Where(x > 0, Log(x), 0).
  bool is_masked(ValueId value, int depth) const {
    if (depth == 0 || consumers_[value].empty() || graph_.is_output(value)) return false;
    for (NodeId id : consumers_[value]) {
      const Node& node = graph_.nodes[id];
      if (node.is("Where")) continue;
      if (node.inputs.size() > 2 || node.outputs.size() != 1 || loses_nan(graph_, node)) return false;
      if (!is_masked(node.outputs[0], depth - 1)) return false;
    }
    return true;
  }

  /// Whether a value is added to scores of which Softmax is taken: negative infinities do no harm unless they are all.
  bool is_mask(ValueId value, int depth) const {
    if (depth == 0 || consumers_[value].empty() || graph_.is_output(value)) return false;
    const auto& shape = graph_.values[value].type.shape;
    if (!shape || shape->empty() || graph_.values[value].type.elem != DataType::float32) return false;
    for (NodeId id : consumers_[value]) {
      const Node& node = graph_.nodes[id];
      auto last = static_cast<int64_t>(shape->size()) - 1;
      if (node.is("Softmax")) {
        int64_t axis = attr(node, "axis", node.opset < 13 ? 1 : -1);
        if (axis != -1 && axis != last) return false;
        continue;
      }
      bool sum = node.is("Add") && node.inputs[0] != node.inputs[1];
      if (!sum && !node.is("Identity") && !(node.is("Unsqueeze") && in_front(node, last))) return false;
      if (!is_mask(node.outputs[0], depth - 1)) return false;
    }
    return true;
  }

  /// Whether Unsqueeze leaves the last dim, numbered `last` before, the last.
  bool in_front(const Node& node, int64_t last) const {
    auto* attribute = graph_.attribute<std::vector<int64_t>>(node, "axes");
    const Tensor* constant = in(node, 1) == kNone ? nullptr : graph_.constant(in(node, 1));
    int64_t count = attribute ? static_cast<int64_t>(attribute->size()) : constant ? constant->size() : -1;
    if (count < 0) return false;
    for (int64_t i = 0; i < count; ++i) {
      int64_t axis = 0;
      if (attribute)
        axis = (*attribute)[static_cast<size_t>(i)];
      else
        std::memcpy(&axis, constant->as<char>() + 8 * i, 8);  // may lie unaligned
      if (axis < 0 || axis >= last + count) return false;
    }
    return true;
  }

  /// Constants that are infinite, and what comes of them: an infinity stays one until arithmetic may make NaN of it.
  void pass_on(const Node& node, ValueId output) {
    Taint taint = Taint::none;
    for (ValueId input : node.inputs)
      if (input != kNone) taint = std::max(taint, taint_[input]);
    if (taint == Taint::none) return;
    bool infinite = taint == Taint::infinite;
    if (infinite && node.domain.empty()) {
      if (one_of(node.op, {"Sigmoid", "Tanh", "Erf", "HardSigmoid"})) return;
      bool only_bounds = one_of(node.op, {"Clip", "Max", "Min"}) &&
                         std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
                           return input == kNone || taint_[input] == Taint::none || graph_.constant(input);
                         });
      if (only_bounds) return;
      if (one_of(node.op, {"Identity",
                           "Cast",
                           "Reshape",
                           "Transpose",
                           "Squeeze",
                           "Unsqueeze",
                           "Flatten",
                           "Slice",
                           "Gather",
                           "Expand",
                           "Tile",
                           "Split",
                           "Concat",
                           "Where",
                           "Relu",
                           "Clip",
                           "Max",
                           "Min",
                           "Exp",
                           "Pad",
                           "Trilu",
                           "ScatterND",
                           "ScatterElements",
                           "ConstantOfShape"}) ||
          (node.op == "Add" && !(taint_[node.inputs[0]] == taint && taint_[node.inputs[1]] == taint))) {
        for (ValueId to : node.outputs)
          if (to != kNone) taint_[to] = taint;
        return;
      }
    }
    if (lost_[output] == kNone) return;
    // Softmax of a row that is masked as a whole: its product with the values is smaller, and is NaN with it.
    bool scores = node.op == "Softmax" || node.op == "Dropout" || node.op == "Identity" || node.op == "Cast";
    if ((scores && consumers_[output].size() == 1 && !graph_.is_output(output) &&
         one_of(graph_.nodes[consumers_[output][0]].op, {"MatMul", "Dropout", "Identity", "Cast"})) ||
        is_masked(output, 4)) {
      taint_[output] = Taint::nan;
      return;
    }
    add(Kind::number, output,
        cat(" made by ", describe(node), "; OpenVINO loses it in ", describe(graph_.nodes[lost_[output]])));
  }

  const Graph& graph_;
  std::vector<Range> ranges_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<NodeId> lost_;
  std::vector<Taint> taint_;
  std::vector<Guard> guards_;
  NodeId node_ = kNone;
};

}  // namespace

bool loses_nan(const Graph& graph, const Node& node) {
  bool inside = false;
  for_each_subgraph(node, [&](const Graph& body) {
    for (const Node& part : body.nodes) inside |= !part.removed && loses_nan(body, part);
  });
  if (inside) return true;
  if (node.inputs.empty() || node.inputs[0] == kNone || !is_float(graph.values[node.inputs[0]].type.elem)) return false;
  if (one_of(node.op, {"LSTM", "GRU", "RNN"})) return graph.attribute<float>(node, "clip") != nullptr;
  return one_of(node.op, {"Relu",
                          "Clip",
                          "Celu",
                          "Exp",
                          "HardSigmoid",
                          "Max",
                          "Min",
                          "Softmax",
                          "LogSoftmax",
                          "ReduceMax",
                          "ReduceMin",
                          "ReduceLogSum",
                          "ReduceLogSumExp",
                          "MaxPool",
                          "GlobalMaxPool",
                          "MaxRoiPool",
                          "ArgMax",
                          "ArgMin",
                          "TopK",
                          "LRN",
                          "Mod",
                          "Unique",
                          "ScatterElements",
                          "ScatterND",
                          "Hardmax",
                          "Attention",
                          "RoiAlign",
                          "GridSample",
                          "SoftmaxCrossEntropyLoss",
                          "FusedConv"});
}

std::vector<Guard> find_guards(const Graph& graph) { return Search(graph).run(); }

bool is_for_inputs(const Graph& graph, const Guard& guard) {
  const Value& value = graph.values[guard.value];
  bool numeric = guard.kind == Kind::nonzero || guard.kind == Kind::positive || guard.kind == Kind::not_negative;
  if (!value.is_input || (numeric && is_float(value.type.elem) && value.type.elem != DataType::float32)) return false;
  return guard.data == kNone || graph.values[guard.data].is_input || graph.constant(guard.data) ||
         graph.values[guard.data].type.static_shape();
}

bool is_inner(const Graph& graph, const Guard& guard) {
  return !is_for_inputs(graph, guard) && graph.nodes[guard.node].opset >= kGuardOpset;
}

std::vector<Guard> inner_guards(const Graph& graph) {
  std::vector<Guard> guards = find_guards(graph);
  std::erase_if(guards, [&](const Guard& guard) { return !is_inner(graph, guard); });
  return guards;
}

std::string describe(const Graph& graph, const Guard& guard) {
  static constexpr const char* what[] = {"a number that is not finite",
                                         "NaN",
                                         "nothing but infinities",
                                         "0",
                                         "a number that is not positive",
                                         "a negative number",
                                         "an index",
                                         "a position",
                                         "an index",
                                         "no elements"};
  return cat("value '", graph.values[guard.value].name, "' holds ", what[static_cast<size_t>(guard.kind)], guard.text);
}

}  // namespace epona::openvino
