#include "providers/openvino/byte_products.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <string_view>

namespace epona::openvino {
namespace {

bool is_byte(DataType type) { return type == DataType::int8 || type == DataType::uint8; }

/// The value that a chain of nodes which move elements only starts from.
ValueId origin(const Graph& graph, ValueId value) {
  static constexpr std::string_view moves[] = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "MaxPool"};
  while (value != kNone && graph.values[value].producer != kNone) {
    const Node& node = graph.nodes[graph.values[value].producer];
    if (std::find(std::begin(moves), std::end(moves), node.op) == std::end(moves)) break;
    value = node.inputs[0];
  }
  return value;
}

bool from_bytes(const Graph& graph, ValueId value) {
  value = origin(graph, value);
  if (value == kNone || graph.values[value].producer == kNone) return false;
  const Node& node = graph.nodes[graph.values[value].producer];
  return node.op == "DequantizeLinear" && node.inputs[0] != kNone && is_byte(graph.values[node.inputs[0]].type.elem);
}

}  // namespace

bool byte_products_are_exact() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vnni")) return true;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1U << 4)) != 0;  // AVX-VNNI
#else
  return true;
#endif
}

bool is_byte_net(const Graph& graph) {
  static constexpr std::string_view products[] = {"Conv", "ConvTranspose", "MatMul", "Gemm"};
  size_t bytes = 0, all = 0;
  for (const Node& node : graph.nodes) {
    if (node.removed || std::find(std::begin(products), std::end(products), node.op) == std::end(products)) continue;
    ++all;
    bytes += from_bytes(graph, node.inputs[0]) && from_bytes(graph, node.inputs[1]);
  }
  return 2 * bytes > all;
}

}  // namespace epona::openvino
