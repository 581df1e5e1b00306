#include "passes/pass_names.h"

#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "passes/pass.h"

namespace epona {
namespace {

struct Namesake {
  std::string_view theirs, ours;
};

// Optimizers of onnxruntime that programs switch off by name, where one of the passes does their work.
constexpr Namesake kNamesakes[] = {
    {"ConstantFolding", "constant_folding"},
    {"CommonSubexpressionElimination", "eliminate_common_subexpressions"},
    {"EliminateIdentity", "eliminate_identity"},
    {"LayerNormFusion", "fuse_layer_norm"},
    {"SimplifiedLayerNormFusion", "fuse_layer_norm"},
    {"SkipLayerNormFusion", "fuse_layer_norm"},
    {"GeluFusion", "fuse_gelu"},
    {"GeluFusionL1", "fuse_gelu"},
    {"GeluFusionL2", "fuse_gelu"},
    {"FastGeluFusion", "fuse_gelu"},
    {"QuickGeluFusion", "fuse_gelu"},
    {"BiasGeluFusion", "fuse_gelu"},
    {"AttentionFusion", "fuse_attention"},
    {"ConvActivationFusion", "fuse_activation"},
    {"GemmActivationFusion", "fuse_activation"},
    {"MatMulActivationFusion", "fuse_activation"},
    {"ConvBNFusion", "fold_conv_scale"},
    {"ConvMulFusion", "fold_conv_scale"},
    {"DynamicQuantizeMatMulFusion", "fuse_dynamic_mat_mul"},
    {"NchwcTransformer", "nchwc_layout"},
};

}  // namespace

std::string find_pass(std::string_view name) {
  for (const Namesake& row : kNamesakes)
    if (row.theirs == name) name = row.ours;
  for (const Pass& pass : all_passes())
    if (name == pass.name) return pass.name;
  return {};
}

std::string unknown_pass(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Pass& pass : all_passes()) names.push_back(pass.name);
  for (const Namesake& row : kNamesakes) names.push_back(row.theirs);
  return cat("there is no pass '", name, "', so that switching it off has no effect.", did_you_mean(name, names));
}

}  // namespace epona
