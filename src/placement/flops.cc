#include "placement/flops.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace epona {
namespace {

class Dims {
 public:
  /// What is read of unknown dims is noted in `assumed`.
  Dims(const Graph& graph, const std::vector<ValueId>& ids, size_t index, std::set<std::string>& assumed)
      : assumed_(assumed) {
    if (index >= ids.size() || ids[index] == kNone) return;
    const Value& value = graph.values[ids[index]];
    present_ = true;
    if (value.constant) {
      for (int64_t dim : value.constant.shape.dims()) dims_.emplace_back().value = dim;
    } else if (value.type.shape) {
      dims_ = *value.type.shape;
    } else {
      rank_known_ = false;
    }
  }
  bool present() const { return present_; }
  size_t rank() const { return dims_.size(); }
  double count() const {
    double product = present_ ? 1 : 0;
    if (!rank_known_) assumed_.insert("?");
    for (const Dim& dim : dims_) product *= number(dim);
    return product;
  }
  /// Counted from the end when negative; 1 when there is no such axis.
  double at(int axis) const {
    int rank = static_cast<int>(dims_.size());
    if (axis < 0) axis += rank;
    return axis < 0 || axis >= rank ? 1 : number(dims_[static_cast<size_t>(axis)]);
  }

 private:
  double number(const Dim& dim) const {
    if (dim.known()) return static_cast<double>(dim.value);
    assumed_.insert(dim.symbol.empty() ? "?" : dim.symbol);
    return 1;
  }

  std::vector<Dim> dims_;
  bool present_ = false, rank_known_ = true;
  std::set<std::string>& assumed_;
};

bool any_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

bool moves_data(std::string_view op) {
  static const std::set<std::string_view> names = {"Reshape",
                                                   "Transpose",
                                                   "Concat",
                                                   "Split",
                                                   "Slice",
                                                   "Gather",
                                                   "GatherElements",
                                                   "GatherND",
                                                   "Squeeze",
                                                   "Unsqueeze",
                                                   "Flatten",
                                                   "Identity",
                                                   "Shape",
                                                   "Size",
                                                   "Expand",
                                                   "Tile",
                                                   "Pad",
                                                   "Constant",
                                                   "ConstantOfShape",
                                                   "ScatterElements",
                                                   "ScatterND",
                                                   "Scatter",
                                                   "DepthToSpace",
                                                   "SpaceToDepth",
                                                   "Range",
                                                   "OneHot",
                                                   "NonZero",
                                                   "Where",
                                                   "If",
                                                   "Loop",
                                                   "Scan",
                                                   "SequenceConstruct",
                                                   "SequenceAt",
                                                   "SequenceEmpty",
                                                   "SequenceInsert",
                                                   "SequenceErase",
                                                   "SequenceLength",
                                                   "SplitToSequence",
                                                   "ConcatFromSequence",
                                                   "Optional",
                                                   "OptionalGetElement",
                                                   "OptionalHasElement",
                                                   "EyeLike",
                                                   "ReverseSequence",
                                                   "Compress",
                                                   "Trilu",
                                                   "StringNormalizer",
                                                   "StringConcat",
                                                   "StringSplit",
                                                   "TensorScatter"};
  return names.contains(op);
}

/// Products over an attention's scores and values: 2 * (S * T * D) each, for every head.
double attention(const Graph& graph, const Node& node, double out, std::set<std::string>& assumed) {
  Dims keys(graph, node.inputs, 1, assumed), query(graph, node.inputs, 0, assumed);
  double length = std::max(keys.rank() >= 3 ? keys.at(-2) : 1.0, query.at(-2));
  size_t cache = node.domain.empty() ? 4 : node.is("GroupQueryAttention", "com.microsoft") ? 3 : 6;
  Dims past(graph, node.inputs, cache, assumed);
  if (past.rank() == 4) length += past.at(-2);
  return 4 * out * length;
}

}  // namespace

double estimate_flops(const Graph& graph, const Node& node, std::set<std::string>& assumed) {
  Dims out(graph, node.outputs, 0, assumed), in(graph, node.inputs, 0, assumed), weight(graph, node.inputs, 1, assumed);
  std::string_view op = node.op;
  if (moves_data(op)) return 0;
  if (any_of(op, {"Conv", "FusedConv", "ConvInteger", "NhwcFusedConv"}))
    return 2 * out.count() * weight.count() / std::max(1.0, weight.at(0));
  if (op == "QLinearConv") {
    Dims kernel(graph, node.inputs, 3, assumed);
    return 2 * out.count() * kernel.count() / std::max(1.0, kernel.at(0));
  }
  if (op == "ConvTranspose") return 2 * in.count() * weight.count() / std::max(1.0, weight.at(0));
  if (any_of(op, {"Gemm", "FusedGemm", "QGemm"})) {
    auto* transposed = graph.attribute<int64_t>(node, "transA");
    return 2 * out.count() * in.at(transposed && *transposed ? 0 : 1);
  }
  if (any_of(op, {"MatMul", "FusedMatMul", "TransposeMatMul", "MatMulInteger", "QLinearMatMul", "MatMulNBits",
                  "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulBnb4"}))
    return 2 * out.count() * in.at(-1);
  if (op == "Attention" && node.domain == "com.microsoft")  // its projections, then itself
    return 2 * in.count() * weight.at(1) + attention(graph, node, out.count(), assumed);
  if (any_of(op, {"Attention", "MultiHeadAttention", "GroupQueryAttention", "DecoderMaskedMultiHeadAttention",
                  "QAttention"}))
    return attention(graph, node, out.count(), assumed);
  if (any_of(op, {"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"})) {
    Dims recurrent(graph, node.inputs, 2, assumed);
    return 2 * in.at(0) * in.at(1) * (weight.count() + recurrent.count());
  }
  if (op == "Einsum") return 2 * std::max(out.count(), 1.0) * std::max({in.at(-1), 1.0});
  if (any_of(op, {"MaxPool", "AveragePool", "LpPool"})) {
    double cells = 1;
    if (auto* kernel = graph.attribute<std::vector<int64_t>>(node, "kernel_shape"))
      for (int64_t size : *kernel) cells *= static_cast<double>(size);
    return out.count() * cells;
  }
  if (op.starts_with("Reduce") || op.starts_with("Global") || op.starts_with("Arg") || op == "TopK" || op == "CumSum")
    return in.count();
  if (any_of(op, {"Softmax", "LogSoftmax", "Gelu", "FastGelu", "QuickGelu", "BiasGelu", "Erf", "Tanh", "Sigmoid"}))
    return 5 * out.count();
  if (op.ends_with("Normalization")) return 8 * in.count();
  return std::max(out.count(), 0.0);
}

}  // namespace epona
