#include "providers/openvino/screen.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "providers/openvino/byte_products.h"
#include "providers/openvino/guard.h"
#include "providers/openvino/known_wrong.h"

namespace epona::openvino {
namespace {

/// The largest and smallest int64 mean "to the end" (Slice) and are understood.
bool out_of_range(const Tensor& constant) {
  if (constant.type != DataType::int64 || !constant.data) return false;
  for (int64_t i = 0; i < constant.size(); ++i) {
    int64_t value;
    std::memcpy(&value, constant.as<char>() + 8 * i, 8);  // may lie unaligned
    if ((value > INT32_MAX || value < INT32_MIN) && value < INT64_MAX - 1 && value > INT64_MIN + 1) return true;
  }
  return false;
}

Refusal type_refusal(const Graph& graph, ValueId id, const Core& core, bool output) {
  const Value& value = graph.values[id];
  const Type& type = value.type;
  if (!type.is_tensor())
    return {Reason::type, cat(output ? "output '" : "input '", value.name, "' is ",
                              type.kind == Type::Kind::unknown ? "of unknown type" : "a " + type.to_string(),
                              "; OpenVINO takes tensors")};
  DataType elem = type.elem;
  bool packed_weight = (elem == DataType::int4 || elem == DataType::uint4) && graph.constant(id);
  if (packed_weight) return {};
  if (elem == DataType::float64)
    return {Reason::type, cat("'", value.name, "' is float64, which OpenVINO's devices compute in float32")};
  if (elem == DataType::uint32 || elem == DataType::uint64)
    return {Reason::type, cat("'", value.name, "' is ", elem, ", which OpenVINO's CPU device computes in int32")};
  if (const Tensor* constant = graph.constant(id); constant && !output && out_of_range(*constant))
    return {Reason::type, cat("constant '", value.name,
                              "' holds int64 values that do not fit in int32, in which OpenVINO's "
                              "CPU device computes")};
  if (core.element(elem) < 0)
    return {Reason::type, cat("'", value.name, "' is a tensor of ", elem, ", which is not exchanged with OpenVINO")};
  return {};
}

/// Another result each time; seeds mean something else in every engine.
bool is_random(const Node& node) {
  static constexpr std::string_view ops[] = {"RandomNormal",      "RandomNormalLike", "RandomUniform",
                                             "RandomUniformLike", "Multinomial",      "Bernoulli"};
  return node.domain.empty() && std::find(std::begin(ops), std::end(ops), node.op) != std::end(ops);
}

/// Nobody could look at what OpenVINO computes inside a body. What the body reads is looked at outside, and an index that
/// is written in the model is taken to be right.
Refusal unguarded(const Graph& graph, const Node& node, const Graph& body) {
  auto is_written = [&](ValueId value) {
    if (body.constant(value)) return true;
    for (auto [outer, inner] : body.captured)
      if (inner == value) return graph.constant(node.captures[static_cast<size_t>(outer)]) != nullptr;
    return false;
  };
  for (const Guard& guard : find_guards(body)) {
    if (guard.kind == Guard::Kind::finite || guard.kind == Guard::Kind::mask) continue;
    bool index = guard.kind == Guard::Kind::index || guard.kind == Guard::Kind::position;
    if (index && is_written(guard.value)) continue;
    return {Reason::better_on_cpu, cat("in its body: ", describe(body, guard), ", for all that is known")};
  }
  return {};
}

}  // namespace

bool is_heavy(const Node& node) {
  static constexpr std::string_view parts[] = {"Conv",      "MatMul", "Gemm",   "LSTM", "GRU",  "RNN",
                                               "Attention", "Einsum", "Resize", "Loop", "Scan", "If"};
  return std::any_of(std::begin(parts), std::end(parts),
                     [&](std::string_view part) { return node.op.find(part) != std::string::npos; });
}

Refusal screen_graph(const Graph& graph, const Core& core) {
  static constexpr std::string_view dynamic[] = {"DynamicQuantizeLinear", "DynamicQuantizeLSTM",
                                                 "DynamicQuantizeMatMul", "MatMulInteger",
                                                 "MatMulIntegerToFloat",  "ConvInteger"};
  if (!core.may_use_cpu()) return {};
  if (core.exact_bytes() && is_byte_net(graph))
    return {
        Reason::better_on_cpu,
        "the model is quantised to 8 bits: OpenVINO's 8-bit products saturate on this processor, which has no VNNI, and "
        "computing it in float instead takes about twice as long as the CPU provider's exact 8-bit kernels; option "
        "enable_qdq_optimizer=1 gives it to OpenVINO as it is"};
  for (const Node& node : graph.nodes)
    if (!node.removed && std::find(std::begin(dynamic), std::end(dynamic), node.op) != std::end(dynamic))
      return {Reason::better_on_cpu,
              cat("the model is quantised dynamically (", describe(node),
                  "): OpenVINO computes that in float and is 3 to 5 times slower, with other roundings")};
  return {};
}

Refusal screen(const Graph& graph, const Node& node, const Core& core, const std::vector<char>& user_int) {
  if (node.domain == "epona") return {Reason::no_kernel, "made by Epona's own passes"};
  if (core.exact_bytes() && !core.bytes_in_float() && node.op == "QuantizeLinear")
    return {Reason::better_on_cpu, "OpenVINO's 8-bit products saturate on this processor, which has no VNNI"};
  if (is_random(node)) return {Reason::attribute, "its random numbers would not be those that its seed stands for"};
  for (ValueId id : node.inputs)
    if (id != kNone)
      if (Refusal refusal = type_refusal(graph, id, core, false); refusal.reason != Reason::none) return refusal;
  for (ValueId id : node.captures)
    if (Refusal refusal = type_refusal(graph, id, core, false); refusal.reason != Reason::none) return refusal;
  for (ValueId id : node.outputs)
    if (id != kNone)
      if (Refusal refusal = type_refusal(graph, id, core, true); refusal.reason != Reason::none) return refusal;
  if (core.may_use_cpu())
    if (Refusal wrong = known_wrong(graph, node, user_int); wrong.reason != Reason::none) return wrong;
  if (core.keep_nan() && loses_nan(graph, node))
    return {Reason::user_option, "OpenVINO may make a number of NaN here, and option keep_nan forbids that"};
  if (node.op == "If" || node.op == "Loop")
    for (ValueId id : node.outputs)
      if (id != kNone && !graph.values[id].type.shape)
        return {Reason::dynamic_shape, cat("the rank of its output '", graph.values[id].name, "' is not known")};
  Refusal inner;
  for_each_subgraph(node, [&](const Graph& body) {
    if (core.may_use_cpu() && inner.reason == Reason::none) inner = unguarded(graph, node, body);
    std::vector<char> body_ints = user_integers(body);
    for (const Node& part : body.nodes) {
      if (part.removed || inner.reason != Reason::none) continue;
      inner = screen(body, part, core, body_ints);
      if (inner.reason != Reason::none) inner.text = cat("its body has ", describe(part), ": ", inner.text);
    }
  });
  return inner;
}

}  // namespace epona::openvino
