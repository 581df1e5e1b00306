#include "passes/quantized_nhwc.h"

#include <algorithm>
#include <numeric>

#include "passes/nchwc_rewriter.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

using Kind = ByteOperation::Kind;

bool is_image(const Type& type) {
  return type.is_tensor() && type.shape && (type.shape->size() == 3 || type.shape->size() == 4);
}

}  // namespace

int ByteRewriter::run() {
  const ByteMatcher matcher(graph_);
  std::set<NodeId> matched;
  bool any_conv = false;
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
    if (graph_.nodes[id].removed) continue;
    auto op = matcher.match(graph_.nodes[id]);
    if (!op) continue;
    any_conv |= op->kind == Kind::conv;
    operations_.emplace(id, std::move(*op));
    matched.insert(id);
  }
  if (!any_conv) return 0;
  find_live(matched);
  int rewritten = 0;
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
    if (!live_[id]) continue;
    if (auto op = operations_.find(id); op != operations_.end()) {
      emit(id, op->second);
      ++rewritten;
      continue;
    }
    const Node& node = graph_.nodes[id];
    for (const auto* list : {&node.inputs, &node.captures})
      for (ValueId value : *list)
        if (value != kNone) make_plain(value);
    if (node.is("QuantizeLinear") && wanted_last_.contains(node.outputs[0]))
      quantize(node);
    else
      nodes_.push_back(node);
  }
  for (ValueId id : graph_.outputs) make_plain(id);
  for (Value& value : graph_.values) value.producer = kNone;
  graph_.nodes.clear();
  for (Node& node : nodes_) graph_.add_node(std::move(node));
  return rewritten;
}

/// Which nodes are still needed when the matched ones read integers, and which images their readers want channels last.
void ByteRewriter::find_live(const std::set<NodeId>& matched) {
  std::vector<bool> needed(graph_.values.size(), false);
  for (ValueId id : graph_.outputs) needed[id] = true;
  live_.assign(graph_.nodes.size(), false);
  for (NodeId id = static_cast<NodeId>(graph_.nodes.size()) - 1; id >= 0; --id) {
    const Node& node = graph_.nodes[id];
    if (node.removed ||
        std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != kNone && needed[v]; }))
      continue;
    live_[id] = true;
    if (matched.contains(id)) {
      const ByteOperation& op = operations_.at(id);
      for (ValueId value : op.inputs) needed[value] = true;
      for (size_t i = 1; op.kind == Kind::reshape && i < op.core.inputs.size(); ++i)
        if (op.core.inputs[i] != kNone) needed[op.core.inputs[i]] = true;
      if (op.kind == Kind::conv || op.kind == Kind::max_pool || op.kind == Kind::average_pool ||
          op.kind == Kind::global_average_pool)
        wanted_last_.insert(op.inputs[0]);
      continue;
    }
    for (const auto* list : {&node.inputs, &node.captures})
      for (ValueId value : *list)
        if (value != kNone) needed[value] = true;
  }
}

ValueId ByteRewriter::add_twin(ValueId image) {
  Type type = graph_.values[image].type;
  if (type.shape && type.shape->size() > 2)
    std::rotate(type.shape->begin() + 1, type.shape->begin() + 2, type.shape->end());
  const ValueId twin = graph_.add_value(graph_.unique_name(graph_.values[image].name + "_nhwc"), std::move(type));
  twins_[image] = twin;
  return twin;
}

void ByteRewriter::transpose(ValueId from, ValueId to, std::vector<int64_t> perm, const std::string& name) {
  Node node;
  node.op = "Transpose";
  const auto opset = graph_.opsets.find("");
  node.opset = opset == graph_.opsets.end() ? 13 : opset->second;
  node.name = name;
  node.inputs = {from};
  node.outputs = {to};
  node.attributes["perm"] = std::move(perm);
  nodes_.push_back(std::move(node));
}

ValueId ByteRewriter::last(ValueId image) {
  if (auto it = twins_.find(image); it != twins_.end()) return it->second;
  const int64_t rank = static_cast<int64_t>(graph_.values[image].type.shape->size());
  std::vector<int64_t> perm{0};
  for (int64_t d = 2; d < rank; ++d) perm.push_back(d);
  perm.push_back(1);
  const ValueId twin = add_twin(image);
  transpose(image, twin, std::move(perm), graph_.values[image].name + "_to_nhwc");
  return twin;
}

void ByteRewriter::make_plain(ValueId image) {
  if (!plain_missing_.erase(image)) return;
  const ValueId twin = twins_.at(image);
  const int64_t rank = static_cast<int64_t>(graph_.values[image].type.shape->size());
  std::vector<int64_t> perm{0, rank - 1};
  for (int64_t d = 1; d + 1 < rank; ++d) perm.push_back(d);
  transpose(twin, image, std::move(perm), graph_.values[image].name + "_from_nhwc");
}

/// QuantizeLinear of a float image, written channels last.
void ByteRewriter::quantize(const Node& node) {
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const auto q = quantization_of(graph_, node, graph_.values[y].type);
  const Type& type = graph_.values[x].type;
  if (!q || !is_image(type) || type.elem != DataType::float32 || !is_image(graph_.values[y].type)) {
    nodes_.push_back(node);
    return;
  }
  Node copy = internal_copy(node, "QuantizeNhwc");
  copy.attributes.clear();
  copy.attributes["scale"] = q->scale;
  copy.attributes["y_zero"] = int64_t{q->zero_point};
  copy.attributes["low"] = int64_t{q->low()};
  copy.attributes["high"] = int64_t{q->high()};
  copy.inputs = {x};
  copy.outputs = {add_twin(y)};
  plain_missing_.insert(y);
  nodes_.push_back(std::move(copy));
}

void ByteRewriter::emit(NodeId id, const ByteOperation& op) {
  const ValueId y = graph_.nodes[id].outputs[0];
  const std::string name = graph_.nodes[id].name;
  if (op.kind == Kind::reshape) {
    Node node = op.core;
    for (ValueId value : op.inputs) make_plain(value);
    node.inputs[0] = op.inputs[0];
    node.outputs = {y};
    nodes_.push_back(std::move(node));
    return;
  }
  if (op.kind == Kind::concat) return emit_concat(op, y, name);
  if (op.kind == Kind::table) {
    const bool channels_last = twins_.contains(op.inputs[0]) && is_image(graph_.values[y].type);
    if (!channels_last) make_plain(op.inputs[0]);
    const ValueId from = channels_last ? last(op.inputs[0]) : op.inputs[0], to = channels_last ? add_twin(y) : y;
    if (channels_last) plain_missing_.insert(y);
    map(from, op.y.type, op.table, name, to);
    return;
  }
  Node node = internal_copy(op.core, "");
  for (const char* key : {"axis", "alpha", "beta", "transA", "transB", "channels_last", "axes", "keepdims"})
    node.attributes.erase(key);
  node.attributes["x_zero"] = int64_t{op.x[0].zero_point};
  node.attributes["y_zero"] = int64_t{op.y.zero_point};
  node.attributes["low"] = int64_t{op.low};
  node.attributes["high"] = int64_t{op.high};
  const auto relative = [&](size_t i) { return static_cast<float>(static_cast<double>(op.x[i].scale) / op.y.scale); };
  bool channels_last = true;
  switch (op.kind) {
    case Kind::conv:
      node.op = "QConvNhwc";
      node.inputs = {last(op.inputs[0])};
      break;
    case Kind::mat_mul:
      node.op = "QMatMul";
      channels_last = false;
      make_plain(op.inputs[0]);
      node.inputs = {op.inputs[0]};
      node.attributes["trans_b"] = int64_t{op.trans_b};
      break;
    case Kind::add:
    case Kind::multiply:
      node.op = op.kind == Kind::add ? "QAdd" : "QMul";
      channels_last =
          is_image(graph_.values[y].type) && (twins_.contains(op.inputs[0]) || twins_.contains(op.inputs[1]));
      for (ValueId x : op.inputs) {
        if (!channels_last) make_plain(x);
        node.inputs.push_back(channels_last ? last(x) : x);
      }
      node.attributes["a_scale"] = op.x[0].scale;
      node.attributes["b_scale"] = op.x[1].scale;
      node.attributes["y_scale"] = op.y.scale;
      node.attributes["b_zero"] = int64_t{op.x[1].zero_point};
      break;
    case Kind::max_pool:
      node.op = "QMaxPoolNhwc";
      node.inputs = {last(op.inputs[0])};
      break;
    case Kind::average_pool:
      node.op = "QAveragePoolNhwc";
      node.inputs = {last(op.inputs[0])};
      node.attributes["scale"] = relative(0);
      break;
    case Kind::global_average_pool:
      node.op = "QGlobalAveragePoolNhwc";
      channels_last = false;
      node.inputs = {last(op.inputs[0])};
      node.attributes["scale"] = relative(0);
      break;
    case Kind::table:
    case Kind::concat:
    case Kind::reshape:
      break;  // done above
  }
  if (op.kind == Kind::conv || op.kind == Kind::mat_mul) {
    const int64_t channels = static_cast<int64_t>(op.scale.size());
    node.inputs.push_back(op.weights);
    node.inputs.push_back(constant(name + "_scale", Tensor::of<float>(Shape{channels}, std::span(op.scale))));
    node.inputs.push_back(
        op.bias.empty() ? kNone : constant(name + "_bias", Tensor::of<int32_t>(Shape{channels}, std::span(op.bias))));
    node.inputs.push_back(op.weights_zero);
  }
  if (channels_last) {
    node.outputs = {add_twin(y)};
    plain_missing_.insert(y);
  } else {
    node.outputs = {y};
  }
  nodes_.push_back(std::move(node));
}

/// y = table[x]; a new value of `type` when y is none.
ValueId ByteRewriter::map(ValueId x, DataType type, const std::vector<uint8_t>& table, const std::string& name,
                          ValueId y) {
  if (y == kNone) {
    Type of_y = graph_.values[x].type;
    of_y.elem = type;
    y = graph_.add_value(graph_.unique_name(graph_.values[x].name + "_requantized"), std::move(of_y));
  }
  Node node;
  node.op = "QTable";
  node.domain = "epona";
  node.name = name;
  node.inputs = {x, constant(name + "_table", Tensor::of<uint8_t>(Shape{256}, std::span(table)))};
  node.outputs = {y};
  nodes_.push_back(std::move(node));
  return y;
}

/// Along the channels; what is quantised otherwise than the result is requantised first.
void ByteRewriter::emit_concat(const ByteOperation& op, ValueId y, const std::string& name) {
  const bool channels_last =
      is_image(graph_.values[y].type) &&
      std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId x) { return twins_.contains(x); });
  Node node = op.core;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (!channels_last) make_plain(op.inputs[i]);
    ValueId x = channels_last ? last(op.inputs[i]) : op.inputs[i];
    if (!(op.x[i] == op.y)) x = map(x, op.y.type, byte_table(op.x[i], op.y, {}), name);
    node.inputs[i] = x;
  }
  const int64_t rank = static_cast<int64_t>(graph_.values[op.inputs[0]].type.shape->size());
  node.attributes.insert_or_assign("axis", channels_last ? rank - 1 : int64_t{1});
  if (channels_last) plain_missing_.insert(y);
  node.outputs = {channels_last ? add_twin(y) : y};
  nodes_.push_back(std::move(node));
}

/// Convolution nets of 8-bit integers: between convolutions images stay integers, channels last, and the products are
/// those of integers. What stays in float keeps its DequantizeLinear and QuantizeLinear.
int quantized_nhwc(Graph& graph, const PassContext&) {
  const bool any = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    return !node.removed && (node.op == "QLinearConv" || node.op == "Conv");
  });
  const bool quantized = any && std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
                           return !node.removed && (node.op == "QLinearConv" || node.op == "DequantizeLinear");
                         });
  return quantized ? ByteRewriter(graph).run() : 0;
}

}  // namespace epona
