#include <algorithm>
#include <cstring>
#include <optional>

#include "passes/passes.h"
#include "passes/rewrite.h"

namespace epona {
namespace {

// Block sizes that the kernels of MatMulNBits take.
constexpr int64_t kSmallestBlock = 16, kLargestBlock = 256;

/// A constant matrix of 4-bit values, and the scales and zero points that DequantizeLinear applies to it.
struct Quantized {
  const Tensor* values;
  const Tensor* scales;
  const Tensor* zeros;  // null: zero
  int axis;
  int64_t block;  // 0: one scale for each index of the axis, or one for all

  bool one_scale() const { return block == 0 && scales->size() == 1; }
  int value(int64_t i) const { return nibble(*values, i); }
  float scale(int64_t i) const {  // the model file does not align it
    float scale;
    std::memcpy(&scale, scales->as<char>() + i * static_cast<int64_t>(sizeof(float)), sizeof(float));
    return scale;
  }
  /// Bits as MatMulNBits has them, unsigned with the middle at 8.
  int nibble(const Tensor& t, int64_t i) const {
    const int bits = t.as<uint8_t>()[i / 2] >> (i % 2 * 4) & 15;
    return t.type == DataType::int4 ? bits ^ 8 : bits;
  }
};

std::optional<Quantized> quantized_matrix(const Graph& graph, const Node& node) {
  if (node.removed || !node.is("DequantizeLinear") || node.inputs.size() < 2 || node.outputs[0] == kNone) return {};
  const bool has_zeros = node.inputs.size() > 2 && node.inputs[2] != kNone;
  Quantized q{graph.constant(node.inputs[0]), graph.constant(node.inputs[1]),
              has_zeros ? graph.constant(node.inputs[2]) : nullptr, 1, 0};
  if (!q.values || !q.scales || (has_zeros && !q.zeros)) return {};
  if (q.values->type != DataType::int4 && q.values->type != DataType::uint4) return {};
  if (q.values->shape.rank() != 2 || q.values->size() == 0 || q.scales->type != DataType::float32) return {};
  if (q.zeros && (q.zeros->type != q.values->type || q.zeros->size() != q.scales->size())) return {};
  const Type& type = graph.values[node.outputs[0]].type;
  if (!type.is_tensor() || type.elem != DataType::float32) return {};
  if (const auto* axis = graph.attribute<int64_t>(node, "axis"))
    q.axis = static_cast<int>(*axis < 0 ? *axis + 2 : *axis);
  if (const auto* block = graph.attribute<int64_t>(node, "block_size")) q.block = *block;
  if (q.axis < 0 || q.axis > 1 || q.block < 0) return {};
  Shape expected = q.values->shape;
  if (q.block > 0) {
    expected[q.axis] = (expected[q.axis] + q.block - 1) / q.block;
    if (!(q.scales->shape == expected)) return {};
  } else if (!q.one_scale() && !(q.scales->shape == Shape{q.values->shape[q.axis]})) {
    return {};
  }
  return q;
}

/// The block size that MatMulNBits can have where K is dim `k_axis` of the matrix; 0 when it cannot hold these scales.
int64_t product_block(const Quantized& q, int k_axis) {
  if (q.block == 0) return q.one_scale() || q.axis != k_axis ? kLargestBlock / 2 : 0;
  if (q.axis != k_axis) return 0;
  const int64_t fits = std::min(q.block & -q.block, kLargestBlock);  // a power of two that divides the block
  return fits >= kSmallestBlock ? fits : 0;
}

class Fuser {
 public:
  explicit Fuser(Graph& graph) : graph_(graph), readers_(graph.consumers()) {}

  int run() {
    int fused = 0;
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id)
      if (const auto q = quantized_matrix(graph_, graph_.nodes[id])) fused += fuse(id, *q);
    if (fused) {
      graph_.opsets.emplace("com.microsoft", 1);
      remove_dead_nodes(graph_);
    }
    return fused;
  }

 private:
  enum class Use { none, product, transposed_product, gather };
  struct Reader {
    NodeId node;
    Use use;
    int64_t block;  // of the operator that takes its place; > 0
  };

  int64_t int_attribute(const Node& node, const char* key, int64_t otherwise = 0) const {
    const int64_t* value = graph_.attribute<int64_t>(node, key);
    return value ? *value : otherwise;
  }
  float float_attribute(const Node& node, const char* key) const {
    const float* value = graph_.attribute<float>(node, key);
    return value ? *value : 1.0f;
  }

  /// What the node does with the matrix `value`.
  Use use_of(const Node& node, ValueId value) const {
    if (!node.captures.empty() || node.inputs.size() < 2) return Use::none;
    if (node.is("Gather")) return node.inputs[0] == value && int_attribute(node, "axis") == 0 ? Use::gather : Use::none;
    if (node.inputs[1] != value || node.inputs[0] == value) return Use::none;
    if (node.is("MatMul")) return Use::product;
    if (!node.is("Gemm") || node.opset < 7 || int_attribute(node, "transA") || float_attribute(node, "alpha") != 1)
      return Use::none;
    const bool transposed = int_attribute(node, "transB") != 0;
    if (node.inputs.size() > 2 && node.inputs[2] != kNone) {
      const Tensor* bias = graph_.constant(node.inputs[2]);
      const Tensor* matrix = graph_.constant(graph_.nodes[graph_.values[value].producer].inputs[0]);
      if (!matrix || !bias || float_attribute(node, "beta") != 1) return Use::none;
      if (!(bias->shape == Shape{matrix->shape[transposed ? 0 : 1]})) return Use::none;
    }
    return transposed ? Use::transposed_product : Use::product;
  }

  /// The block size that such a reader can have; 0: none.
  static int64_t block_for(const Quantized& q, Use use) {
    if (use == Use::product) return product_block(q, 0);
    if (use == Use::transposed_product) return product_block(q, 1);
    if (use != Use::gather) return 0;
    if (q.block > 0) return q.axis == 1 ? q.block : 0;
    return !q.one_scale() && q.axis == 0 ? q.values->shape[1] : 0;
  }

  /// The only user of a float copy is a product or a row lookup; a Transpose on the way to a MatMul belongs to it.
  bool collect(const Quantized& q, ValueId value, bool transposed, std::vector<Reader>& found) const {
    if (graph_.is_output(value) || readers_[value].empty()) return false;
    for (NodeId reader : readers_[value]) {
      const Node& node = graph_.nodes[reader];
      if (!transposed && node.is("Transpose") && node.captures.empty()) {
        const auto* perm = graph_.attribute<std::vector<int64_t>>(node, "perm");
        if (perm && *perm != std::vector<int64_t>{1, 0}) return false;
        if (!collect(q, node.outputs[0], true, found)) return false;
        continue;
      }
      Use use = transposed && !node.is("MatMul") ? Use::none : use_of(node, value);
      if (transposed && use == Use::product) use = Use::transposed_product;
      const int64_t block = block_for(q, use);
      if (block <= 0) return false;
      found.push_back({reader, use, block});
    }
    return true;
  }

  int fuse(NodeId id, const Quantized& q) {
    std::vector<Reader> found;
    if (!collect(q, graph_.nodes[id].outputs[0], false, found)) return 0;
    const Node dequantize = graph_.nodes[id];
    ValueId packed[2][3];  // per orientation: values, scales, zero points
    bool made[2] = {};
    for (const Reader& reader : found) {
      // Adding constants moves values, and with them the tensors that `q` points to: look them up anew.
      const Quantized now = *quantized_matrix(graph_, dequantize);
      if (reader.use == Use::gather) {
        make_gather(reader, now, dequantize);
        continue;
      }
      const bool transposed = reader.use == Use::transposed_product;
      if (!made[transposed]) pack(now, transposed, reader.block, dequantize, packed[transposed]);
      made[transposed] = true;
      make_product(reader, *quantized_matrix(graph_, dequantize), transposed, packed[transposed]);
    }
    return 1;
  }

  void make_gather(const Reader& reader, const Quantized& q, const Node& dequantize) {
    std::vector<ValueId> inputs = {dequantize.inputs[0], graph_.nodes[reader.node].inputs[1], dequantize.inputs[1],
                                   kNone};
    if (q.zeros) inputs[3] = dequantize.inputs[2];
    if (q.block == 0) {  // one scale a row
      for (size_t i : {2, 3}) {
        if (inputs[i] == kNone) continue;
        Tensor column = *graph_.constant(inputs[i]);
        column.shape.push_back(1);
        inputs[i] = graph_.add_constant(graph_.unique_name(graph_.values[inputs[i]].name + "_rows"), std::move(column));
      }
    }
    Node& node = graph_.nodes[reader.node];
    node.op = "GatherBlockQuantized";
    node.domain = "com.microsoft";
    node.opset = 1;
    node.inputs = std::move(inputs);
    node.attributes = {{"gather_axis", int64_t{0}}, {"quantize_axis", int64_t{1}}, {"block_size", reader.block}};
  }

  void make_product(const Reader& reader, const Quantized& q, bool transposed, const ValueId (&packed)[3]) {
    Node& node = graph_.nodes[reader.node];
    const ValueId bias = node.op == "Gemm" && node.inputs.size() > 2 ? node.inputs[2] : kNone;
    node.inputs = {node.inputs[0], packed[0], packed[1], packed[2], kNone, bias};
    node.op = "MatMulNBits";
    node.domain = "com.microsoft";
    node.opset = 1;
    node.attributes = {{"K", q.values->shape[transposed ? 1 : 0]},
                       {"N", q.values->shape[transposed ? 0 : 1]},
                       {"bits", int64_t{4}},
                       {"block_size", reader.block}};
  }

  /// Two columns of two rows at a time: out[column][k / 2], `row` bytes a column.
  static void pack_pairs(const Quantized& q, bool transposed, int64_t k, int64_t n, int64_t row, uint8_t* out) {
    const uint8_t* in = q.values->as<uint8_t>();
    const uint8_t flip = q.values->type == DataType::int4 ? 0x88 : 0;
    if (transposed) {
      for (int64_t c = 0; c < n; ++c)
        for (int64_t i = 0; i < k / 2; ++i) out[c * row + i] = in[c * (k / 2) + i] ^ flip;
      return;
    }
    constexpr int64_t kColumns = 64;  // their lines of the result stay in the cache
    for (int64_t n0 = 0; n0 < n; n0 += kColumns) {
      for (int64_t i = 0; i < k; i += 2) {
        const uint8_t *one = in + i * (n / 2), *two = one + n / 2;
        for (int64_t c = n0; c < std::min(n, n0 + kColumns); c += 2) {
          const int a = one[c / 2], b = two[c / 2];
          out[c * row + i / 2] = static_cast<uint8_t>((a & 15) | (b & 15) << 4) ^ flip;
          out[(c + 1) * row + i / 2] = static_cast<uint8_t>(a >> 4 | (b & 0xf0)) ^ flip;
        }
      }
    }
  }

  void pack(const Quantized& q, bool transposed, int64_t block, const Node& dequantize, ValueId (&out)[3]) {
    const int64_t k = q.values->shape[transposed ? 1 : 0], n = q.values->shape[transposed ? 0 : 1];
    const int64_t blocks = (k + block - 1) / block, row = blocks * block / 2, zero_row = (blocks + 1) / 2;
    const int64_t k_step = transposed ? 1 : n, n_step = transposed ? k : 1;
    Tensor values = Tensor::allocate(DataType::uint8, Shape{n, blocks, block / 2});
    Tensor scales = Tensor::allocate(DataType::float32, Shape{n, blocks});
    // MatMulNBits takes the middle, 8, where no zero points are given: the zero of int4, not that of uint4.
    const bool with_zeros = q.zeros || q.values->type == DataType::uint4;
    Tensor zeros = with_zeros ? Tensor::allocate(DataType::uint8, Shape{n, zero_row}) : Tensor();
    std::fill_n(values.as<uint8_t>(), values.size(), uint8_t{0});
    if (with_zeros) std::fill_n(zeros.as<uint8_t>(), zeros.size(), uint8_t{0});
    if (n % 2 == 0 && k % 2 == 0) {
      pack_pairs(q, transposed, k, n, row, values.as<uint8_t>());
    } else {
      for (int64_t c = 0; c < n; ++c)
        for (int64_t i = 0; i < k; ++i)
          values.as<uint8_t>()[c * row + i / 2] |=
              static_cast<uint8_t>(q.value(i * k_step + c * n_step) << (i % 2 * 4));
    }
    const int64_t per_column = q.block > 0 ? (k + q.block - 1) / q.block : 0;
    for (int64_t c = 0; c < n; ++c)
      for (int64_t b = 0; b < blocks; ++b) {
        int64_t at = 0;
        if (q.block > 0)
          at = transposed ? c * per_column + b * block / q.block : b * block / q.block * n + c;
        else if (!q.one_scale())
          at = c;
        scales.as<float>()[c * blocks + b] = q.scale(at);
        if (with_zeros && q.zeros)
          zeros.as<uint8_t>()[c * zero_row + b / 2] |= static_cast<uint8_t>(q.nibble(*q.zeros, at) << (b % 2 * 4));
      }
    const std::string stem = graph_.values[dequantize.inputs[0]].name;
    const auto add = [&](const char* suffix, Tensor tensor) {
      return graph_.add_constant(graph_.unique_name(stem + suffix), std::move(tensor));
    };
    out[0] = add("_nbits", std::move(values));
    out[1] = add("_scales", std::move(scales));
    out[2] = with_zeros ? add("_zeros", std::move(zeros)) : kNone;
  }

  Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
};

}  // namespace

/// DequantizeLinear of a constant 4-bit matrix whose every reader is a product or a row lookup becomes com.microsoft's
/// MatMulNBits and GatherBlockQuantized: the matrix stays in 4 bits and is not dequantised as a whole at every run.
int fuse_four_bit_weight(Graph& graph, const PassContext&) { return Fuser(graph).run(); }

}  // namespace epona
