#include "providers/openvino/value_range.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

namespace epona::openvino {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
Range bounds(const Tensor& tensor) {
  Range range{kInfinity, -kInfinity};
  for (int64_t i = 0; i < tensor.size(); ++i) {
    T element;
    std::memcpy(&element, tensor.as<char>() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));  // may lie unaligned
    auto value = static_cast<double>(element);
    if (std::isnan(value)) return {};
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  return range;
}

Range of_constant(const Tensor& tensor) {
  // Weights say nothing and would take as long as OpenVINO takes to read its compiled model; tables of positions do.
  int64_t small = is_integer(tensor.type) ? 1 << 16 : 1 << 10;
  if (!tensor.data || tensor.size() == 0 || tensor.size() > small) return {};
  switch (tensor.type) {
    case DataType::float32:
      return bounds<float>(tensor);
    case DataType::int64:
      return bounds<int64_t>(tensor);
    case DataType::int32:
      return bounds<int32_t>(tensor);
    case DataType::uint8:
      return bounds<uint8_t>(tensor);
    case DataType::boolean:
      return {0, 1};
    default:
      return {};
  }
}

bool one_of(const Node& node, std::initializer_list<std::string_view> ops) {
  return node.domain.empty() && std::find(ops.begin(), ops.end(), node.op) != ops.end();
}

Range either(const Range& a, const Range& b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

/// A bound from infinities that cancel is none.
Range checked(double low, double high) {
  return {std::isnan(low) ? -kInfinity : low, std::isnan(high) ? kInfinity : high};
}

Range product(const Range& a, const Range& b) {
  auto times = [](double x, double y) { return x == 0 || y == 0 ? 0 : x * y; };
  double corners[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)};
  return checked(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4));
}

Range of_power(const Range& base, const Range& exponent) {
  bool even = exponent.low == exponent.high && std::fmod(exponent.low, 2) == 0;
  return even || base.not_negative() ? Range{0, kInfinity} : Range{};
}

/// The range of a node's first output from those of its inputs.
Range of_node(const Graph& graph, const Node& node, const std::vector<Range>& known) {
  auto in = [&](size_t i) {
    return i < node.inputs.size() && node.inputs[i] != kNone ? known[node.inputs[i]] : Range{};
  };
  bool two = node.inputs.size() == 2 && node.inputs[0] != kNone && node.inputs[1] != kNone;
  if (one_of(node, {"Identity",       "Cast",
                    "Reshape",        "Transpose",
                    "Squeeze",        "Unsqueeze",
                    "Flatten",        "Slice",
                    "Gather",         "Expand",
                    "Tile",           "Split",
                    "GatherElements", "GatherND",
                    "Dropout",        "ReduceMean",
                    "ReduceMax",      "ReduceMin",
                    "MaxPool",        "AveragePool",
                    "GlobalMaxPool",  "GlobalAveragePool",
                    "DepthToSpace",   "SpaceToDepth",
                    "TopK",           "Trilu"}))
    return one_of(node, {"Trilu", "AveragePool"}) ? either(in(0), {0, 0}) : in(0);
  if (one_of(node, {"Concat", "Max", "Min", "Sum"})) {
    Range all = in(0);
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      Range next = in(i);
      if (node.op == "Concat") all = either(all, next);
      if (node.op == "Max") all = {std::max(all.low, next.low), std::max(all.high, next.high)};
      if (node.op == "Min") all = {std::min(all.low, next.low), std::min(all.high, next.high)};
      if (node.op == "Sum") all = checked(all.low + next.low, all.high + next.high);
    }
    return all;
  }
  if (node.is("Where")) return either(in(1), in(2));
  if (node.is("Add") && two) return checked(in(0).low + in(1).low, in(0).high + in(1).high);
  if (node.is("Sub") && two) return checked(in(0).low - in(1).high, in(0).high - in(1).low);
  if (node.is("Neg")) return {-in(0).high, -in(0).low};
  if (node.is("Mul") && two) return node.inputs[0] == node.inputs[1] ? Range{0, kInfinity} : product(in(0), in(1));
  if (node.is("Div") && two && in(1).positive() && in(0).not_negative()) return {0, kInfinity};
  if (node.is("Mod") && two && in(1).positive() && in(1).high < kInfinity) {
    auto* fmod = graph.attribute<int64_t>(node, "fmod");
    if (!fmod || !*fmod) return {0, in(1).high - 1};
    return {in(0).not_negative() ? 0 : -in(1).high, in(1).high};
  }
  if (node.is("Pow") && two) return of_power(in(0), in(1));
  if (node.is("Clip")) {
    Range range = in(0);
    auto *low = graph.attribute<float>(node, "min"), *high = graph.attribute<float>(node, "max");
    double bottom = low ? *low : in(1).low, top = high ? *high : in(2).high;
    range.low = std::min(std::max(range.low, bottom), top);
    range.high = std::min(range.high, top);
    return range;
  }
  if (node.is("Sqrt")) return {in(0).low > 0 ? std::sqrt(in(0).low) : 0, kInfinity};
  if (node.is("ReduceSum") && in(0).not_negative()) return {0, kInfinity};
  if (node.is("Reciprocal") && in(0).positive()) return {0, kInfinity};
  if (node.is("Abs") && in(0).not_negative()) return in(0);
  // Exp may underflow to 0.
  if (one_of(node, {"Abs", "Relu", "Exp", "Softplus", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Shape", "Size",
                    "NonZero", "LpPool", "Bernoulli"}))
    return {0, kInfinity};
  if (one_of(node, {"Sigmoid", "HardSigmoid", "Softmax", "Hardmax", "Equal", "Less", "LessOrEqual", "Greater",
                    "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf"}))
    return {0, 1};
  if (one_of(node, {"Tanh", "Erf", "Sin", "Cos", "Softsign", "Sign"})) return {-1, 1};
  if (one_of(node, {"ArgMax", "ArgMin"})) {
    Range range{0, kInfinity};
    const auto& shape = graph.values[node.inputs[0]].type.shape;
    auto* axis = graph.attribute<int64_t>(node, "axis");
    if (!shape) return range;
    auto rank = static_cast<int64_t>(shape->size());
    int64_t at = (axis ? *axis : 0) + (axis && *axis < 0 ? rank : 0);
    if (at >= 0 && at < rank && (*shape)[at].known()) range.high = static_cast<double>((*shape)[at].value - 1);
    return range;
  }
  return {};
}

}  // namespace

std::vector<Range> value_ranges(const Graph& graph) {
  std::vector<Range> ranges(graph.values.size());
  for (size_t id = 0; id < ranges.size(); ++id)
    if (const Tensor* constant = graph.constant(static_cast<ValueId>(id))) ranges[id] = of_constant(*constant);
  for (const Node& node : graph.nodes) {
    if (node.removed || node.outputs.empty() || node.outputs[0] == kNone) continue;
    Range range = of_node(graph, node, ranges);
    ranges[node.outputs[0]] = range;
    if (node.is("Split"))
      for (ValueId output : node.outputs)
        if (output != kNone) ranges[output] = range;
  }
  return ranges;
}

}  // namespace epona::openvino
