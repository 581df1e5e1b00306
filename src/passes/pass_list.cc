#include "passes/passes.h"

namespace epona {

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = {
      {"widen_float16", OptLevel::basic, widen_float16},
      {"eliminate_identity", OptLevel::basic, eliminate_identity, true},
      {"fuse_weight_transpose", OptLevel::basic, fuse_weight_transpose},
      {"constant_folding", OptLevel::basic, constant_folding, true},
      {"eliminate_common_subexpressions", OptLevel::basic, eliminate_common_subexpressions, true},
      {"eliminate_dead_nodes", OptLevel::basic, eliminate_dead_nodes, true},
      // Before the float forms of quantised operators are built.
      {"quantized_nhwc", OptLevel::layout, quantized_nhwc, false, true},
      // Fusions go here: they see a clean graph and may leave dead nodes.
      {"fuse_layer_norm", OptLevel::extended, fuse_layer_norm},
      {"fuse_gelu", OptLevel::extended, fuse_gelu},
      {"fuse_attention", OptLevel::extended, fuse_attention},
      {"fuse_activation", OptLevel::extended, fuse_activation},
      {"expand_quantized_operators", OptLevel::extended, expand_quantized_operators},
      {"fuse_fake_quantization", OptLevel::extended, fuse_fake_quantization},
      {"fuse_four_bit_weight", OptLevel::extended, fuse_four_bit_weight},
      {"dequantized_weight_folding", OptLevel::basic, dequantized_weight_folding},
      {"fold_conv_scale", OptLevel::basic, fold_conv_scale},
      {"fuse_dynamic_conv", OptLevel::extended, fuse_dynamic_conv},
      {"fuse_dynamic_mat_mul", OptLevel::extended, fuse_dynamic_mat_mul},
      {"fuse_mat_mul", OptLevel::extended, fuse_mat_mul},
      {"nchwc_layout", OptLevel::layout, nchwc_layout, false, true},
      {"eliminate_dead_nodes_again", OptLevel::basic, eliminate_dead_nodes},
  };
  return passes;
}

}  // namespace epona
