#include "providers/openvino/known_wrong.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

namespace epona::openvino {
namespace {

/// A node with what the rules ask of it.
struct Case {
  const Graph& graph;
  const Node& node;
  const std::vector<char>& user_int;

  int64_t attr(std::string_view key, int64_t otherwise) const {
    auto* value = graph.attribute<int64_t>(node, key);
    return value ? *value : otherwise;
  }
  std::string text(std::string_view key, const char* otherwise) const {
    auto* value = graph.attribute<std::string>(node, key);
    return value ? *value : otherwise;
  }
  std::vector<int64_t> ints(std::string_view key) const {
    auto* value = graph.attribute<std::vector<int64_t>>(node, key);
    return value ? *value : std::vector<int64_t>();
  }
  bool has(size_t input) const { return input < node.inputs.size() && node.inputs[input] != kNone; }
  bool wants(size_t output) const { return output < node.outputs.size() && node.outputs[output] != kNone; }
  const Tensor* constant(size_t input) const { return has(input) ? graph.constant(node.inputs[input]) : nullptr; }
  DataType type(size_t input) const {
    return has(input) ? graph.values[node.inputs[input]].type.elem : DataType::undefined;
  }
  bool small_int(size_t input) const {
    DataType t = type(input);
    return t == DataType::int8 || t == DataType::uint8 || t == DataType::int16 || t == DataType::uint16;
  }
  bool reads_user_int() const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != kNone && user_int[v]; });
  }
};

/// Windows that begin behind the input and its leading padding are dropped by ONNX and kept by OpenVINO. There is one only
/// if stride + trailing padding exceeds the kernel's extent.
bool ceil_window(const Case& c) {
  if (c.attr("ceil_mode", 0) == 0) return false;
  std::vector<int64_t> kernel = c.ints("kernel_shape"), strides = c.ints("strides"), pads = c.ints("pads"),
                       dilations = c.ints("dilations");
  for (size_t i = 0; i < kernel.size(); ++i) {
    int64_t stride = i < strides.size() ? strides[i] : 1, dilation = i < dilations.size() ? dilations[i] : 1;
    int64_t trailing = pads.size() == 2 * kernel.size() ? pads[kernel.size() + i] : 0;
    if (stride + trailing > dilation * (kernel[i] - 1) + 1) return true;
  }
  return false;
}

/// ONNX computes positions with scale times length, OpenVINO with the rounded output length.
bool fractional_align_corners(const Case& c) {
  if (c.text("coordinate_transformation_mode", "half_pixel") != "align_corners" || !c.has(2)) return false;
  const Tensor* scales = c.constant(2);
  if (!scales || scales->type != DataType::float32) return true;
  if (scales->size() == 0) return false;
  auto values = scales->span<float>();
  return std::any_of(values.begin(), values.end(),
                     [](float s) { return s != static_cast<float>(static_cast<int64_t>(s)); });
}

/// Whether a step is anything but a constant other than zero.
bool unsure_step(const Case& c) {
  const Tensor* step = c.constant(2);
  if (!step || !step->data || step->size() != 1) return true;
  auto* bytes = step->as<char>();
  return std::all_of(bytes, bytes + step->bytes(), [](char byte) { return byte == 0; });
}

/// Among the small constants of the graph, such as what masks are filled with.
bool has_infinity(const Graph& graph) {
  for (const Value& value : graph.values) {
    const Tensor& constant = value.constant;
    if (!constant || constant.type != DataType::float32 || !constant.data || constant.size() > 64) continue;
    for (int64_t i = 0; i < constant.size(); ++i) {
      float element;
      std::memcpy(&element, constant.as<char>() + 4 * i, 4);  // may lie unaligned
      if (std::isinf(element)) return true;
    }
  }
  return false;
}

bool zero_dim(const Case& c) {
  if (!c.has(0) || !c.graph.values[c.node.inputs[0]].type.shape) return false;
  auto& dims = *c.graph.values[c.node.inputs[0]].type.shape;
  return std::any_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.value == 0; });
}

/// Whether element-wise nodes with a constant of several elements follow: they are computed together with the reduction.
bool constants_follow(const Graph& graph, ValueId value, int depth) {
  for (const Node& node : graph.nodes) {
    if (node.removed || node.inputs.empty() || node.inputs.size() > 2 || depth == 0) continue;
    if (std::find(node.inputs.begin(), node.inputs.end(), value) == node.inputs.end()) continue;
    for (ValueId input : node.inputs)
      if (const Tensor* constant = input == kNone ? nullptr : graph.constant(input); constant && constant->size() > 1)
        return true;
    if (!node.outputs.empty() && node.outputs[0] != kNone && constants_follow(graph, node.outputs[0], depth - 1))
      return true;
  }
  return false;
}

bool reduced_then_constants(const Case& c) {
  return c.attr("keepdims", 1) == 0 && c.wants(0) && constants_follow(c.graph, c.node.outputs[0], 4);
}

constexpr const char* kReduceFused =
    "OpenVINO applies constants that follow a reduction without keepdims to the wrong "
    "elements (the skl_gnb_iris model)";

/// Softmax and its kin took the rest of the dims as one before opset 13.
bool flattens(const Case& c) {
  if (c.node.opset >= 13 || !c.has(0)) return false;
  auto& shape = c.graph.values[c.node.inputs[0]].type.shape;
  int64_t axis = c.attr("axis", 1);
  return !shape || (axis != -1 && axis != static_cast<int64_t>(shape->size()) - 1);
}

bool whole_numbers(const Case& c) { return is_integer(c.type(0)); }

bool ignored_axes(const Case& c) { return c.node.opset >= 13 && !c.ints("axes").empty(); }

/// Whether the number of classes is not a constant above 0.
bool unsure_depth(const Case& c) {
  const Tensor* depth = c.constant(1);
  if (!depth || !depth->data || depth->size() != 1 || !is_integer(depth->type)) return true;
  int64_t count = 0;
  std::memcpy(&count, depth->data, depth->bytes());  // may lie unaligned
  return depth->type == DataType::int32 ? static_cast<int32_t>(count) <= 0 : count <= 0;
}

bool unknown_or_scalar(const Case& c) {
  auto& shape = c.graph.values[c.node.inputs[0]].type.shape;
  return !shape || shape->empty();
}

/// Whether a step of Loop may give a row of another shape than the one before.
bool rows_may_change(const Case& c) {
  auto* body = c.graph.attribute<std::shared_ptr<Graph>>(c.node, "body");
  if (!body) return false;
  size_t carried = c.node.inputs.size() - 2;
  for (size_t o = 1 + carried; o < (*body)->outputs.size(); ++o)
    if (!(*body)->values[(*body)->outputs[o]].type.static_shape()) return true;
  return false;
}

bool crops(const Case& c) {
  const Tensor* pads = c.constant(1);
  if (!pads || pads->type != DataType::int64 || !pads->data) return true;
  for (int64_t i = 0; i < pads->size(); ++i) {
    int64_t pad;
    std::memcpy(&pad, pads->as<char>() + 8 * i, 8);  // may lie unaligned
    if (pad < 0) return true;
  }
  return false;
}

constexpr const char* kRounds = "OpenVINO computes it in float and rounds otherwise: some results are one off";
constexpr const char* kFlattens = "OpenVINO does not take the dims from the axis on as one, as opsets before 13 do";
constexpr const char* kWhole = "OpenVINO saturates products of whole numbers; ONNX wraps";
constexpr const char* kAxes = "OpenVINO ignores the attribute axes here";
constexpr const char* kLengths = "OpenVINO's results differ for sequences of length 0 and for lengths that do not fit";

struct Rule {
  std::string_view op;
  bool (*applies)(const Case&);
  const char* text;  ///< with the case that shows it
};

bool always(const Case&) { return true; }

constexpr const char* kSaturates =
    "OpenVINO saturates 8- and 16-bit arithmetic and rounds its quotients; ONNX wraps and "
    "truncates";
constexpr const char* kInt32Product = "OpenVINO computes int64 in int32 and the product may not fit";

const Rule kRules[] = {
    {"Attention",
     [](const Case& c) { return c.attr("left_window_size", -1) >= 0 || c.attr("right_window_size", -1) >= 0; },
     "OpenVINO ignores the attention window (test_attention_local_window)"},
    {"Attention", [](const Case& c) { return c.wants(3); },
     "OpenVINO's scores output differs (test_attention_4d_with_past_and_present_qk_matmul_bias_3d_mask_causal)"},
    {"Attention", [](const Case& c) { return c.has(6); },
     "OpenVINO's results with nonpad_kv_seqlen differ (test_attention_4d_causal_padded_kv_bf16)"},
    {"BitShift", always,
     "OpenVINO's results differ for negative values and for shifts by the width and more "
     "(test_bitshift_left_int8_overflow)"},
    {"DFT", [](const Case& c) { return c.node.opset < 20; }, "OpenVINO takes the wrong axis (test_dft_axis_opset19)"},
    {"DFT", [](const Case& c) { return c.attr("onesided", 0) != 0; }, "OpenVINO's result has another shape"},
    {"Softmax", flattens, kFlattens},
    {"LogSoftmax", flattens, kFlattens},
    {"Hardmax", flattens, kFlattens},
    {"MatMul", whole_numbers, kWhole},
    {"Gemm", whole_numbers, kWhole},
    {"Einsum", whole_numbers, kWhole},
    {"Gemm",
     [](const Case& c) {
       auto* beta = c.graph.attribute<float>(c.node, "beta");
       return beta && *beta == 0;
     },
     "OpenVINO multiplies the bias by a beta of 0, and NaN stays"},
    {"Mod", [](const Case& c) { return c.attr("fmod", 0) != 0; }, "OpenVINO's remainder by infinity is NaN"},
    {"Cast",
     [](const Case& c) {
       return c.wants(0) && is_float(c.type(0)) && c.graph.values[c.node.outputs[0]].type.elem == DataType::boolean;
     },
     "OpenVINO takes fractions for false"},
    {"QLinearConv", always, kRounds},
    {"QLinearMatMul", always, kRounds},
    {"QuantizeLinear", [](const Case& c) { return c.type(2) == DataType::int16 || c.type(2) == DataType::uint16; },
     "OpenVINO does not round to 16 bits"},
    {"LRN", [](const Case& c) { return c.attr("size", 1) % 2 == 0; }, "OpenVINO places even windows otherwise"},
    {"ConvTranspose", [](const Case& c) { return c.text("auto_pad", "NOTSET").starts_with("SAME"); },
     "OpenVINO's result has another shape with auto_pad=SAME"},
    {"MaxPool", [](const Case& c) { return c.attr("storage_order", 0) != 0; }, "OpenVINO ignores storage_order=1"},
    {"AveragePool", [](const Case& c) { return c.attr("ceil_mode", 0) != 0; },
     "OpenVINO counts cells outside of the padded input with ceil_mode=1"},
    {"ReduceL1", ignored_axes, kAxes},
    {"ReduceL2", ignored_axes, kAxes},
    {"ReduceLogSum", ignored_axes, kAxes},
    {"ReduceLogSumExp", ignored_axes, kAxes},
    {"ReduceSumSquare", ignored_axes, kAxes},
    {"LSTM", [](const Case& c) { return c.has(4); }, kLengths},
    {"GRU", [](const Case& c) { return c.has(4); }, kLengths},
    {"RNN", [](const Case& c) { return c.has(4); }, kLengths},
    {"Pad", [](const Case& c) { return c.text("mode", "constant") != "constant" && c.node.opset >= 11 && crops(c); },
     "OpenVINO crops after it reflects"},
    {"DynamicQuantizeLinear", always,
     "OpenVINO multiplies by the reciprocal of the scale: some results are one off "
     "(test_dynamicquantizelinear)"},
    {"QuantizeLinear", [](const Case& c) { return !c.constant(1); },
     "OpenVINO multiplies by the reciprocal of a computed scale: some results are one off "
     "(test_dynamicquantizelinear_expanded)"},
    {"ThresholdedRelu", always, "OpenVINO makes NaN of negative infinity"},
    {"GRU", [](const Case& c) { return c.attr("layout", 0) != 0; }, "OpenVINO ignores layout=1 (test_gru_batchwise)"},
    {"LSTM", [](const Case& c) { return c.attr("layout", 0) != 0; }, "OpenVINO ignores layout=1 (test_lstm_batchwise)"},
    {"RNN", [](const Case& c) { return c.attr("layout", 0) != 0; },
     "OpenVINO ignores layout=1 (test_simple_rnn_batchwise)"},
    {"MaxPool", ceil_window,
     "OpenVINO keeps a last window that begins in the padding "
     "(test_maxpool_2d_ceil_output_size_reduce_by_one)"},
    {"NonZero", unknown_or_scalar, "OpenVINO gives a scalar coordinates"},
    {"OneHot", unsure_depth, "OpenVINO takes a depth of 0 for another one"},
    {"Loop", rows_may_change, "OpenVINO does not see that the rows of a scan output change their shape"},
    {"NonMaxSuppression", always,
     "OpenVINO decides otherwise at the threshold "
     "(test_nonmaxsuppression_iou_threshold_boundary)"},
    {"Range", unsure_step,
     "OpenVINO divides by the step without a look at it: the process ends when an integer one is 0"},
    {"ReduceMax", zero_dim, "OpenVINO's maximum of nothing is -3.4e38 (test_reduce_max_empty_set)"},
    {"ReduceMin", zero_dim, "OpenVINO's minimum of nothing is 3.4e38"},
    {"ReduceMax", [](const Case& c) { return has_infinity(c.graph); },
     "OpenVINO's maximum of negative infinities is -3.4e38 (test_attention_23_boolmask_fullymasked_row_nan_robustness_"
     "expanded)"},
    {"ReduceMin", [](const Case& c) { return has_infinity(c.graph); }, "OpenVINO's minimum of infinities is 3.4e38"},
    {"ReduceSum", reduced_then_constants, kReduceFused},
    {"ReduceMean", reduced_then_constants, kReduceFused},
    {"ReduceMax", reduced_then_constants, kReduceFused},
    {"ReduceMin", reduced_then_constants, kReduceFused},
    {"ReduceProd", reduced_then_constants, kReduceFused},
    {"Resize", [](const Case& c) { return c.attr("antialias", 0) != 0; },
     "OpenVINO's results with antialias differ (test_resize_downsample_scales_linear_antialias)"},
    {"Resize", [](const Case& c) { return c.attr("exclude_outside", 0) != 0; },
     "OpenVINO ignores exclude_outside (test_resize_downsample_scales_cubic_A_n0p5_exclude_outside)"},
    {"Resize", [](const Case& c) { return c.text("keep_aspect_ratio_policy", "stretch") != "stretch"; },
     "OpenVINO ignores keep_aspect_ratio_policy (test_resize_upsample_sizes_nearest_not_larger)"},
    {"Resize", fractional_align_corners,
     "OpenVINO aligns corners with the rounded size "
     "(test_resize_downsample_scales_linear_align_corners)"},
    {"RoiAlign", [](const Case& c) { return c.text("mode", "avg") == "max"; },
     "OpenVINO's maxima differ (test_roialign_mode_max)"},
    {"SpaceToDepth", [](const Case& c) { return c.text("mode", "DCR") != "DCR"; },
     "OpenVINO ignores mode=CRD (test_spacetodepth_crd_mode_example)"},
    {"Tile", [](const Case& c) { return !c.constant(1); },
     "OpenVINO writes wrong values when the repeats are computed (test_tile)"},
    {"TopK", [](const Case& c) { return c.wants(1); },
     "OpenVINO orders equal values otherwise than by index (test_top_k_same_values)"},
    {"Add", [](const Case& c) { return c.small_int(0); }, kSaturates},
    {"Sub", [](const Case& c) { return c.small_int(0); }, kSaturates},
    {"Mul", [](const Case& c) { return c.small_int(0); }, kSaturates},
    {"Div", [](const Case& c) { return c.small_int(0); }, kSaturates},
    {"Sum", [](const Case& c) { return c.small_int(0); }, kSaturates},
    {"Abs", [](const Case& c) { return c.small_int(0); }, kSaturates},
    {"Neg", [](const Case& c) { return c.small_int(0); }, kSaturates},
    {"Mul", [](const Case& c) { return c.reads_user_int(); }, kInt32Product},
    {"Pow", [](const Case& c) { return c.reads_user_int(); }, kInt32Product},
    {"ReduceProd", [](const Case& c) { return c.reads_user_int(); }, kInt32Product},
};

}  // namespace

Refusal known_wrong(const Graph& graph, const Node& node, const std::vector<char>& user_int) {
  Case c{graph, node, user_int};
  if (node.domain == "com.microsoft") {
    static constexpr std::string_view wrong[] = {"Attention", "MultiHeadAttention", "GroupQueryAttention", "FusedGemm"};
    if (node.op.starts_with("QLinear")) return {Reason::better_on_cpu, kRounds};
    if (node.op == "RotaryEmbedding" || node.op == "EmbedLayerNormalization")
      return {Reason::better_on_cpu, "OpenVINO does not check its indices"};
    if (std::find(std::begin(wrong), std::end(wrong), node.op) != std::end(wrong))
      return {Reason::better_on_cpu, "OpenVINO's results differ for some of its inputs and attributes"};
  }
  if (node.op == "Normalizer" && c.text("norm", "MAX") == "MAX")
    return {Reason::better_on_cpu, "OpenVINO divides by the sum instead of the maximum"};
  if (!node.domain.empty()) return {};
  if (node.opset < 7 && c.attr("broadcast", 0) != 0 && node.op != "Gemm")
    return {Reason::better_on_cpu, "OpenVINO's results differ with the attribute broadcast of opsets before 7"};
  for (const Rule& rule : kRules)
    if (rule.op == node.op && rule.applies(c)) return {Reason::better_on_cpu, rule.text};
  return {};
}

std::vector<char> user_integers(const Graph& graph) {
  static constexpr std::string_view bounded[] = {"Shape", "Size", "NonZero", "ArgMax", "ArgMin"};
  std::vector<char> user(graph.values.size(), 0);
  auto is_int = [&](ValueId id) {
    DataType type = graph.values[id].type.elem;
    return type == DataType::int64 || type == DataType::int32;
  };
  for (size_t id = 0; id < user.size(); ++id) {
    const Value& value = graph.values[id];
    user[id] = (value.is_input || value.is_capture) && is_int(static_cast<ValueId>(id));
  }
  for (const Node& node : graph.nodes) {
    if (node.removed || std::find(std::begin(bounded), std::end(bounded), node.op) != std::end(bounded)) continue;
    bool from_user = node.op == "Cast" ? true : false;
    for (ValueId input : node.inputs) from_user |= input != kNone && user[input];
    if (node.op == "Cast" && node.inputs[0] != kNone && is_int(node.inputs[0])) from_user = user[node.inputs[0]];
    for (ValueId output : node.outputs)
      if (output != kNone && is_int(output)) user[output] = from_user;
  }
  return user;
}

}  // namespace epona::openvino
