#pragma once
#include "passes/pass.h"

namespace epona {

// One function a file; the order is in pass_list.cc.
int widen_float16(Graph& graph, const PassContext& context);
int constant_folding(Graph& graph, const PassContext& context);
int dequantized_weight_folding(Graph& graph, const PassContext& context);
int eliminate_identity(Graph& graph, const PassContext& context);
int eliminate_common_subexpressions(Graph& graph, const PassContext& context);
int fold_conv_scale(Graph& graph, const PassContext& context);
int fuse_dynamic_conv(Graph& graph, const PassContext& context);
int fuse_dynamic_mat_mul(Graph& graph, const PassContext& context);
int fuse_weight_transpose(Graph& graph, const PassContext& context);
int fuse_four_bit_weight(Graph& graph, const PassContext& context);
int fuse_mat_mul(Graph& graph, const PassContext& context);
int fuse_attention(Graph& graph, const PassContext& context);
int fuse_gelu(Graph& graph, const PassContext& context);
int fuse_layer_norm(Graph& graph, const PassContext& context);
int fuse_activation(Graph& graph, const PassContext& context);
int quantized_nhwc(Graph& graph, const PassContext& context);
int expand_quantized_operators(Graph& graph, const PassContext& context);
int fuse_fake_quantization(Graph& graph, const PassContext& context);
int nchwc_layout(Graph& graph, const PassContext& context);
int eliminate_dead_nodes(Graph& graph, const PassContext& context);

}  // namespace epona
