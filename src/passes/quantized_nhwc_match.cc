#include <algorithm>
#include <cmath>

#include "passes/activation_attribute.h"
#include "passes/quantized_nhwc.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

bool is_quantize(const Node& node) { return node.is("QuantizeLinear") || node.is("QuantizeLinear", "com.microsoft"); }
bool is_dequantize(const Node& node) {
  return node.is("DequantizeLinear") || node.is("DequantizeLinear", "com.microsoft");
}

ValueId input(const Node& node, size_t i) { return i < node.inputs.size() ? node.inputs[i] : kNone; }

bool is_byte_tensor(const Tensor* t) {
  return t && t->data && (t->type == DataType::uint8 || t->type == DataType::int8);
}

/// A sum of tensors of one rank broadcasts dim by dim, in any order of the dims.
bool same_rank(const Type& a, const Type& b) {
  return a.shape && b.shape && !a.shape->empty() && a.shape->size() == b.shape->size();
}

int64_t int_attribute(const Graph& graph, const Node& node, const char* key, int64_t otherwise) {
  const int64_t* value = graph.attribute<int64_t>(node, key);
  return value ? *value : otherwise;
}

bool is_reshape(const Node& node) {
  return node.domain.empty() &&
         (node.op == "Flatten" || node.op == "Reshape" || node.op == "Squeeze" || node.op == "Unsqueeze");
}

}  // namespace

std::vector<uint8_t> byte_table(const Quantization& x, const Quantization& y,
                                const std::vector<Activation>& functions) {
  float values[256];
  for (int i = 0; i < 256; ++i) {
    const int q = x.type == DataType::int8 ? static_cast<int8_t>(i) : i;
    values[i] = static_cast<float>(q - x.zero_point) * x.scale;
  }
  for (auto f = functions.rbegin(); f != functions.rend(); ++f) activate(*f, values, values, 256);
  std::vector<uint8_t> table;
  for (float value : values) {
    const float steps = std::isnan(value) ? 0.0f : std::nearbyint(value / y.scale);
    const float q =
        std::clamp(steps + static_cast<float>(y.zero_point), static_cast<float>(y.low()), static_cast<float>(y.high()));
    table.push_back(static_cast<uint8_t>(static_cast<int>(q)));
  }
  return table;
}

std::optional<ByteMatcher::Source> ByteMatcher::source(ValueId value) const {
  const Node* node =
      value == kNone || graph_.values[value].producer == kNone ? nullptr : &graph_.nodes[graph_.values[value].producer];
  if (!node || !is_dequantize(*node) || graph_.constant(node->inputs[0])) return std::nullopt;
  const Type& type = graph_.values[value].type;
  if (!type.is_tensor() || type.elem != DataType::float32) return std::nullopt;
  const auto q = quantization_of(graph_, *node, graph_.values[node->inputs[0]].type);
  return q ? std::optional<Source>({node->inputs[0], *q}) : std::nullopt;
}

bool ByteMatcher::add_source(ByteOperation& op, ValueId value) const {
  const auto s = source(value);
  if (!s) return false;
  op.inputs.push_back(s->bytes);
  op.x.push_back(s->quantization);
  return true;
}

/// The node that computes `value` before it is clamped; nobody else may read what lies between. The bounds of op take
/// the clamps in.
const Node* ByteMatcher::inner(ValueId value, ByteOperation& op) const {
  for (;;) {
    if (!read_once(graph_, readers_, value) || graph_.values[value].producer == kNone) return nullptr;
    const Type& type = graph_.values[value].type;
    if (!type.is_tensor() || type.elem != DataType::float32) return nullptr;
    const Node& node = graph_.nodes[graph_.values[value].producer];
    const auto activation = activation_of(graph_, node);
    if (!activation || (activation->kind != ActivationKind::relu && activation->kind != ActivationKind::clip))
      return &node;
    int low = op.y.zero_point, high = op.y.high();
    if (activation->kind == ActivationKind::clip) {
      if (!(activation->a <= activation->b)) return nullptr;
      low = op.y.quantize(activation->a), high = op.y.quantize(activation->b);
    }
    low = std::clamp(low, op.low, op.high), high = std::clamp(high, op.low, op.high);
    op.low = low, op.high = high;
    value = node.inputs[0];
  }
}

int ByteMatcher::spatial_rank(ValueId bytes) const {
  const auto& shape = graph_.values[bytes].type.shape;
  return shape ? static_cast<int>(shape->size()) - 2 : -1;
}

bool ByteMatcher::window_is_plain(const Node& node, size_t spatial) const {
  constexpr int64_t kMost = 1 << 30;  // kernels count in int
  const auto fits = [&](const char* key, size_t count, int64_t least) {
    auto it = node.attributes.find(key);
    if (it == node.attributes.end()) return true;
    const auto* values = std::get_if<std::vector<int64_t>>(&it->second);
    return values && values->size() == count &&
           std::all_of(values->begin(), values->end(), [&](int64_t v) { return v >= least && v <= kMost; });
  };
  return fits("kernel_shape", spatial, 1) && fits("strides", spatial, 1) && fits("dilations", spatial, 1) &&
         fits("pads", 2 * spatial, 0);
}

std::optional<ByteOperation> ByteMatcher::match(const Node& node) const {
  if (node.outputs.empty() || node.outputs[0] == kNone) return std::nullopt;
  auto op = recognise(node);
  // Layouts can be chosen for values of known rank only.
  const auto& y = graph_.values[node.outputs[0]].type.shape;
  if (op && op->kind != ByteOperation::Kind::mat_mul && op->kind != ByteOperation::Kind::reshape) {
    const auto& x = graph_.values[op->inputs[0]].type.shape;
    if (!x || !y || x->size() != y->size()) return std::nullopt;
  }
  return op;
}

ByteMatcher::Result ByteMatcher::recognise(const Node& node) const {
  if (is_quantize(node)) return from_float(node);
  if (node.is("QLinearConv")) return linear_conv(node);
  if (node.is("QLinearAdd", "com.microsoft") || node.is("QLinearMul", "com.microsoft")) return linear_binary(node);
  if (node.is("QLinearGlobalAveragePool", "com.microsoft") || node.is("QLinearAveragePool", "com.microsoft"))
    return linear_pool(node);
  if (node.is("QGemm", "com.microsoft")) return linear_gemm(node);
  if (node.is("MaxPool")) return byte_max_pool(node);
  return std::nullopt;
}

ByteMatcher::Result ByteMatcher::from_float(const Node& quantize) const {
  ByteOperation op;
  const auto y = quantization_of(graph_, quantize, graph_.values[quantize.outputs[0]].type);
  if (!y) return std::nullopt;
  op.y = *y;
  op.low = y->low(), op.high = y->high();
  if (auto function = table(quantize, *y)) return function;
  const Node* core = inner(quantize.inputs[0], op);
  if (!core || !core->domain.empty()) return std::nullopt;
  op.core = *core;
  if (core->op == "Conv") return float_conv(std::move(op));
  if (core->op == "Gemm" || core->op == "MatMul") return float_mat_mul(std::move(op));
  if (core->op == "Add" || core->op == "Mul") return binary(std::move(op));
  if (core->op == "Concat") return concat(std::move(op));
  if (!add_source(op, core->inputs[0])) return std::nullopt;
  if (core->op == "MaxPool" || core->op == "AveragePool") return pool(std::move(op));
  if (core->op == "GlobalAveragePool" || core->op == "ReduceMean") return global_pool(std::move(op));
  if (is_reshape(*core)) return reshape(std::move(op));
  return std::nullopt;
}

ByteMatcher::Result ByteMatcher::pool(ByteOperation op) const {
  const int spatial = spatial_rank(op.inputs[0]);
  if (spatial < 1 || spatial > 2 || !window_is_plain(op.core, static_cast<size_t>(spatial)) ||
      !op.core.attributes.contains("kernel_shape"))
    return std::nullopt;
  op.kind = ByteOperation::Kind::average_pool;
  if (op.core.op != "MaxPool") return op;
  // Only the values move.
  if (op.core.outputs.size() > 1 && op.core.outputs[1] != kNone) return std::nullopt;
  if (!(op.x[0] == op.y) || op.low != op.y.low() || op.high != op.y.high()) return std::nullopt;
  op.kind = ByteOperation::Kind::max_pool;
  return op;
}

ByteMatcher::Result ByteMatcher::global_pool(ByteOperation op) const {
  const int spatial = spatial_rank(op.inputs[0]);
  if (spatial < 1 || spatial > 2) return std::nullopt;
  if (op.core.op == "ReduceMean") {
    std::vector<int64_t> axes;
    if (const auto* given = graph_.attribute<std::vector<int64_t>>(op.core, "axes")) axes = *given;
    if (const ValueId from = input(op.core, 1); from != kNone) {
      const Tensor* tensor = graph_.constant(from);
      if (!tensor || !tensor->data || tensor->type != DataType::int64) return std::nullopt;
      axes = tensor->ints();
    }
    for (int64_t& axis : axes) axis += axis < 0 ? spatial + 2 : 0;
    std::sort(axes.begin(), axes.end());
    if (int_attribute(graph_, op.core, "keepdims", 1) == 0 ||
        axes != (spatial == 1 ? std::vector<int64_t>{2} : std::vector<int64_t>{2, 3}))
      return std::nullopt;
  }
  op.kind = ByteOperation::Kind::global_average_pool;
  return op;
}

ByteMatcher::Result ByteMatcher::binary(ByteOperation op) const {
  if (!add_source(op, op.core.inputs[0]) || !add_source(op, op.core.inputs[1]) ||
      !same_rank(graph_.values[op.inputs[0]].type, graph_.values[op.inputs[1]].type))
    return std::nullopt;
  op.kind = op.core.op == "Add" ? ByteOperation::Kind::add : ByteOperation::Kind::multiply;
  return op;
}

/// Functions of one value that stand between DequantizeLinear and QuantizeLinear, or nothing does.
ByteMatcher::Result ByteMatcher::table(const Node& quantize, const Quantization& y) const {
  std::vector<Activation> functions;
  ValueId value = quantize.inputs[0];
  auto from = source(value);
  while (!from) {
    if (!read_once(graph_, readers_, value) || graph_.values[value].producer == kNone) return std::nullopt;
    const Node& node = graph_.nodes[graph_.values[value].producer];
    const auto activation = activation_of(graph_, node);
    if (!activation || activation->kind == ActivationKind::fake_quant8) return std::nullopt;
    functions.push_back(*activation);
    value = node.inputs[0];
    from = source(value);
  }
  ByteOperation op;
  op.kind = ByteOperation::Kind::table;
  op.core = quantize;
  op.inputs = {from->bytes};
  op.x = {from->quantization};
  op.y = y;
  op.table = byte_table(from->quantization, y, functions);
  return op;
}

ByteMatcher::Result ByteMatcher::concat(ByteOperation op) const {
  const int64_t axis = int_attribute(graph_, op.core, "axis", 0);
  if (op.low != op.y.low() || op.high != op.y.high()) return std::nullopt;
  for (ValueId value : op.core.inputs) {
    if (!add_source(op, value)) return std::nullopt;
    const auto& shape = graph_.values[op.inputs.back()].type.shape;
    if (!shape || shape->size() < 3 || shape->size() > 4 ||
        (axis != 1 && axis + static_cast<int64_t>(shape->size()) != 1) ||
        shape->size() != graph_.values[op.inputs[0]].type.shape->size())
      return std::nullopt;
  }
  op.kind = ByteOperation::Kind::concat;
  return op;
}

ByteMatcher::Result ByteMatcher::reshape(ByteOperation op) const {
  if (!(op.x[0] == op.y) || op.low != op.y.low() || op.high != op.y.high()) return std::nullopt;
  op.kind = ByteOperation::Kind::reshape;
  return op;
}

/// Constant 8-bit weights with one scale, or one for each index of `axis`.
bool ByteMatcher::weights(ByteOperation& op, ValueId w, ValueId scale, ValueId zero, int axis) const {
  const Tensor *t = graph_.constant(w), *s = graph_.constant(scale), *z = graph_.constant(zero);
  if (!is_byte_tensor(t) || t->size() == 0 || !s || s->type != DataType::float32 || !s->data || (zero != kNone && !z))
    return false;
  const int64_t channels = t->shape[axis];
  if (s->size() != 1 && (s->size() != channels || s->shape.rank() != 1)) return false;
  if (z && (z->type != t->type || !z->data || z->size() != s->size())) return false;
  const double factor = static_cast<double>(op.x[0].scale) / static_cast<double>(op.y.scale);
  op.scale.clear();
  for (int64_t c = 0; c < channels; ++c) {
    const float step = s->as<float>()[s->size() == 1 ? 0 : c];
    const float unit = static_cast<float>(factor * step);
    if (!(step > 0) || !std::isfinite(step) || !std::isfinite(unit)) return false;
    op.scale.push_back(unit);
  }
  op.weights = w;
  op.weights_zero = zero;
  return true;
}

/// A float bias in units of the sums: constant, or integers and their steps. A bias that is no whole number of units is
/// rounded, where a unit is too small to be seen.
bool ByteMatcher::bias(ByteOperation& op, ValueId value, int64_t channels) const {
  if (value == kNone) return true;
  const Tensor *b = graph_.constant(value), *steps = nullptr;
  const ValueId producer = graph_.values[value].producer;
  if (!b && producer != kNone && is_dequantize(graph_.nodes[producer])) {
    const Node& node = graph_.nodes[producer];
    b = graph_.constant(node.inputs[0]);
    steps = graph_.constant(input(node, 1));
    if (!b || b->type != DataType::int32 || !steps || steps->type != DataType::float32 || !steps->data ||
        (steps->size() != 1 && steps->size() != channels) || node.attributes.contains("block_size"))
      return false;
    if (const ValueId zero = input(node, 2); zero != kNone) {
      const Tensor* z = graph_.constant(zero);
      if (!z || !z->data || z->type != DataType::int32) return false;
      for (int64_t i = 0; i < z->size(); ++i)
        if (z->as<int32_t>()[i] != 0) return false;
    }
  } else if (!b || b->type != DataType::float32) {
    return false;
  }
  if (!b->data || b->shape.rank() != 1 || b->size() != channels) return false;
  constexpr double kLargest = 1 << 30, kVisible = 0.02;
  for (int64_t c = 0; c < channels; ++c) {
    const double unit = static_cast<double>(op.scale[static_cast<size_t>(c)]) * static_cast<double>(op.y.scale);
    const double real = steps
                            ? static_cast<double>(b->as<int32_t>()[c]) * steps->as<float>()[steps->size() == 1 ? 0 : c]
                            : static_cast<double>(b->as<float>()[c]);
    const double units = real / unit, whole = std::nearbyint(units);
    if (!(std::abs(units) < kLargest)) return false;
    if (std::abs(units - whole) > 1e-3 &&
        std::abs(units - whole) * static_cast<double>(op.scale[static_cast<size_t>(c)]) > kVisible)
      return false;
    op.bias.push_back(static_cast<int32_t>(whole));
  }
  return true;
}

ByteMatcher::Result ByteMatcher::conv(ByteOperation op) const {
  const Shape& w = graph_.constant(op.weights)->shape;
  const int64_t group = int_attribute(graph_, op.core, "group", 1);
  const int spatial = w.rank() - 2;
  if (spatial < 1 || spatial > 2 || group < 1 || w[0] % group != 0 ||
      !window_is_plain(op.core, static_cast<size_t>(spatial)))
    return std::nullopt;
  if (spatial_rank(op.inputs[0]) != spatial) return std::nullopt;
  const Dim& channels = (*graph_.values[op.inputs[0]].type.shape)[1];
  if (channels.known() && channels.value != w[1] * group) return std::nullopt;
  const auto* kernel = graph_.attribute<std::vector<int64_t>>(op.core, "kernel_shape");
  if (kernel && !(Shape(*kernel) == Shape(w.dims().subspan(2)))) return std::nullopt;
  // Each group is a product of its own: many small ones are left to the float kernels.
  const bool depthwise = group > 1 && w[1] == 1 && w[0] == group;
  if (!depthwise && group > 1 && (w[1] < 8 || w[0] / group < 8)) return std::nullopt;
  op.kind = ByteOperation::Kind::conv;
  return op;
}

ByteMatcher::Result ByteMatcher::float_conv(ByteOperation op) const {
  if (!add_source(op, op.core.inputs[0])) return std::nullopt;
  const ValueId w = op.core.inputs[1];
  const NodeId producer = graph_.values[w].producer;
  if (producer == kNone || !is_dequantize(graph_.nodes[producer])) return std::nullopt;
  const Node& dequantize = graph_.nodes[producer];
  const Tensor* bytes = graph_.constant(dequantize.inputs[0]);
  const Tensor* scale = graph_.constant(input(dequantize, 1));
  if (!is_byte_tensor(bytes) || bytes->shape.rank() < 3 || !scale || dequantize.attributes.contains("block_size"))
    return std::nullopt;
  const int64_t axis = int_attribute(graph_, dequantize, "axis", 1);
  if (scale->size() > 1 && axis != 0 && axis != -bytes->shape.rank()) return std::nullopt;
  if (!weights(op, dequantize.inputs[0], dequantize.inputs[1], input(dequantize, 2), 0) ||
      !bias(op, input(op.core, 2), bytes->shape[0]))
    return std::nullopt;
  return conv(std::move(op));
}

ByteMatcher::Result ByteMatcher::float_mat_mul(ByteOperation op) const {
  if (!add_source(op, op.core.inputs[0])) return std::nullopt;
  const bool gemm = op.core.op == "Gemm";
  if (gemm) {
    const float *alpha = graph_.attribute<float>(op.core, "alpha"), *beta = graph_.attribute<float>(op.core, "beta");
    if ((alpha && *alpha != 1.0f) || (beta && *beta != 1.0f) || int_attribute(graph_, op.core, "transA", 0) != 0)
      return std::nullopt;
    op.trans_b = int_attribute(graph_, op.core, "transB", 0) != 0;
  }
  const auto& a = graph_.values[op.inputs[0]].type.shape;
  if (!a || (gemm ? a->size() != 2 : a->size() < 2)) return std::nullopt;
  const NodeId producer = graph_.values[op.core.inputs[1]].producer;
  if (producer == kNone || !is_dequantize(graph_.nodes[producer])) return std::nullopt;
  const Node& dequantize = graph_.nodes[producer];
  const Tensor* bytes = graph_.constant(dequantize.inputs[0]);
  const Tensor* scale = graph_.constant(input(dequantize, 1));
  if (!is_byte_tensor(bytes) || bytes->shape.rank() != 2 || !scale || dequantize.attributes.contains("block_size"))
    return std::nullopt;
  const int columns = op.trans_b ? 0 : 1;
  int64_t axis = int_attribute(graph_, dequantize, "axis", 1);
  axis += axis < 0 ? 2 : 0;
  if (scale->size() > 1 && axis != columns) return std::nullopt;
  if (!weights(op, dequantize.inputs[0], dequantize.inputs[1], input(dequantize, 2), columns) ||
      !bias(op, gemm ? input(op.core, 2) : kNone, bytes->shape[columns]))
    return std::nullopt;
  op.kind = ByteOperation::Kind::mat_mul;
  return op;
}

ByteMatcher::Result ByteMatcher::linear_conv(const Node& node) const {
  if (node.inputs.size() < 8 || graph_.constant(node.inputs[0])) return std::nullopt;
  const auto x = quantization_of(graph_, node.inputs[1], node.inputs[2], graph_.values[node.inputs[0]].type);
  const auto y = quantization_of(graph_, node.inputs[6], node.inputs[7], graph_.values[node.outputs[0]].type);
  if (!x || !y) return std::nullopt;
  ByteOperation op;
  op.core = node;
  op.inputs = {node.inputs[0]};
  op.x = {*x};
  op.y = *y;
  op.low = y->low(), op.high = y->high();
  const Tensor* w = graph_.constant(node.inputs[3]);
  if (!is_byte_tensor(w) || w->shape.rank() < 3 || !weights(op, node.inputs[3], node.inputs[4], node.inputs[5], 0))
    return std::nullopt;
  if (const ValueId bias = input(node, 8); bias != kNone) {
    const Tensor* b = graph_.constant(bias);
    if (!b || !b->data || b->type != DataType::int32 || b->size() != w->shape[0]) return std::nullopt;
    op.bias.assign(b->as<int32_t>(), b->as<int32_t>() + b->size());
  }
  return conv(std::move(op));
}

ByteMatcher::Result ByteMatcher::linear_binary(const Node& node) const {
  ByteOperation op;
  for (size_t i : {size_t{0}, size_t{3}}) {
    if (node.inputs.size() < 7 || graph_.constant(node.inputs[i])) return std::nullopt;
    const auto x = quantization_of(graph_, node.inputs[i + 1], node.inputs[i + 2], graph_.values[node.inputs[i]].type);
    if (!x) return std::nullopt;
    op.inputs.push_back(node.inputs[i]);
    op.x.push_back(*x);
  }
  const auto y = quantization_of(graph_, node.inputs[6], input(node, 7), graph_.values[node.outputs[0]].type);
  if (!y || !same_rank(graph_.values[op.inputs[0]].type, graph_.values[op.inputs[1]].type)) return std::nullopt;
  op.kind = node.op == "QLinearAdd" ? ByteOperation::Kind::add : ByteOperation::Kind::multiply;
  op.core = node;
  op.y = *y;
  op.low = y->low(), op.high = y->high();
  return op;
}

ByteMatcher::Result ByteMatcher::linear_pool(const Node& node) const {
  if (int_attribute(graph_, node, "channels_last", 0) != 0 || node.inputs.size() < 4 || graph_.constant(node.inputs[0]))
    return std::nullopt;
  const auto x = quantization_of(graph_, node.inputs[1], node.inputs[2], graph_.values[node.inputs[0]].type);
  const auto y = quantization_of(graph_, node.inputs[3], input(node, 4), graph_.values[node.outputs[0]].type);
  if (!x || !y) return std::nullopt;
  ByteOperation op;
  op.core = node;
  op.inputs = {node.inputs[0]};
  op.x = {*x};
  op.y = *y;
  op.low = y->low(), op.high = y->high();
  return node.op == "QLinearAveragePool" ? pool(std::move(op)) : global_pool(std::move(op));
}

ByteMatcher::Result ByteMatcher::linear_gemm(const Node& node) const {
  const float* alpha = graph_.attribute<float>(node, "alpha");
  if (node.inputs.size() < 8 || node.inputs[7] == kNone || (alpha && *alpha != 1.0f) ||
      int_attribute(graph_, node, "transA", 0) != 0 || graph_.constant(node.inputs[0]))
    return std::nullopt;
  const auto x = quantization_of(graph_, node.inputs[1], node.inputs[2], graph_.values[node.inputs[0]].type);
  const auto y = quantization_of(graph_, node.inputs[7], input(node, 8), graph_.values[node.outputs[0]].type);
  const Tensor* w = graph_.constant(node.inputs[3]);
  if (!x || !y || !is_byte_tensor(w) || w->shape.rank() != 2) return std::nullopt;
  ByteOperation op;
  op.kind = ByteOperation::Kind::mat_mul;
  op.core = node;
  op.inputs = {node.inputs[0]};
  op.x = {*x};
  op.y = *y;
  op.low = y->low(), op.high = y->high();
  op.trans_b = int_attribute(graph_, node, "transB", 0) != 0;
  const int columns = op.trans_b ? 0 : 1;
  if (!weights(op, node.inputs[3], node.inputs[4], node.inputs[5], columns)) return std::nullopt;
  if (const ValueId bias = node.inputs[6]; bias != kNone) {
    const Tensor* b = graph_.constant(bias);
    if (!b || !b->data || b->type != DataType::int32 || b->size() != w->shape[columns]) return std::nullopt;
    op.bias.assign(b->as<int32_t>(), b->as<int32_t>() + b->size());
  }
  return op;
}

ByteMatcher::Result ByteMatcher::byte_max_pool(const Node& node) const {
  const Type& type = graph_.values[node.inputs[0]].type;
  if (!type.is_tensor() || (type.elem != DataType::uint8 && type.elem != DataType::int8) ||
      graph_.constant(node.inputs[0]))
    return std::nullopt;
  ByteOperation op;
  op.core = node;
  op.inputs = {node.inputs[0]};
  op.y.type = type.elem;
  op.x = {op.y};
  op.low = op.y.low(), op.high = op.y.high();
  return pool(std::move(op));
}

}  // namespace epona
