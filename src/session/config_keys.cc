#include "session/config_keys.h"

#include <charconv>
#include <stdexcept>

#include "base/error.h"
#include "base/nearest.h"

namespace epona {
namespace {

// Epona's own, then those of onnxruntime 1.32: most of these steer what Epona does otherwise or not at all, and are
// accepted so that programs which set them run.
constexpr std::string_view kKeys[] = {
    "session.fallback",
    "session.require_placement",
    "session.provider_policy",
    "epona.deterministic",
    "ep.dynamic.workload_type",
    "ep.dynamic.qnn_htp_performance_mode",
    "optimization.constant_folding_max_output_size_in_bytes",
    "optimization.disable_specified_optimizers",
    "optimization.enable_cast_chain_elimination",
    "optimization.enable_gelu_approximation",
    "optimization.minimal_build_optimizations",
    "session.allow_released_opsets_only",
    "session.collect_node_memory_stats_to_file",
    "session.compile_only",
    "session.debug_layout_transformation",
    "session.disable_aot_function_inlining",
    "session.disable_cpu_ep_fallback",
    "session.disable_double_qdq_remover",
    "session.disable_model_compile",
    "session.disable_prepacking",
    "session.disable_qdq_constant_folding",
    "session.disable_quant_qdq",
    "session.dynamic_block_base",
    "session.enable_cpu_mem_arena",
    "session.enable_dq_matmulnbits_fusion",
    "session.enable_mem_pattern",
    "session.enable_moe_expert_counting",
    "session.enable_moe_expert_statistics",
    "session.enable_profiling",
    "session.enable_quant_qdq_cleanup",
    "session.enable_saved_runtime_optimizations",
    "session.execution_mode",
    "session.fail_on_suboptimal_compiled_model",
    "session.force_spinning_stop",
    "session.function_expansion_byte_limit",
    "session.function_expansion_node_limit",
    "session.gqa_value_layout",
    "session.graph_optimization_level",
    "session.graph_optimizations_loop_level",
    "session.inter_op.allow_spinning",
    "session.inter_op.spin_backoff_max",
    "session.inter_op.spin_duration_us",
    "session.inter_op_num_threads",
    "session.intra_op.allow_spinning",
    "session.intra_op.spin_backoff_max",
    "session.intra_op.spin_duration_us",
    "session.intra_op_num_threads",
    "session.intra_op_thread_affinities",
    "session.kernel_dispatch_policy",
    "session.layer_assignment_settings",
    "session.load_model_format",
    "session.log_id",
    "session.log_severity_level",
    "session.log_verbosity_level",
    "session.max_shape_override",
    "session.model_external_initializers_file_folder_path",
    "session.name_based_layer_assignment",
    "session.node_partition_config_file",
    "session.optimized_model_external_initializers_file_name",
    "session.optimized_model_external_initializers_min_size_in_bytes",
    "session.optimized_model_filepath",
    "session.prepack.enable_parallel",
    "session.qdq_matmulnbits_accuracy_level",
    "session.qdq_matmulnbits_block_size",
    "session.qdqisint8allowed",
    "session.record_ep_graph_assignment_info",
    "session.resource_cuda_partitioning_settings",
    "session.save_external_prepacked_constant_initializers",
    "session.save_model_format",
    "session.set_denormal_as_zero",
    "session.strict_shape_type_inference",
    "session.strict_workspace_verification",
    "session.use_deterministic_compute",
    "session.use_device_allocator_for_initializers",
    "session.use_env_allocators",
    "session.use_external_initializer_file_buffers_directly",
    "session.use_memory_mapped_ort_model",
    "session.use_ort_model_bytes_directly",
    "session.use_ort_model_bytes_for_initializers",
    "session.use_per_session_threads",
    "session.x64quantprecision",
};

// Families whose keys belong to a provider or to kernels.
constexpr std::string_view kPrefixes[] = {"ep.", "epona.", "mlas.", "session.moe.", "session.external_data_loader."};

constexpr std::string_view kRunKeys[] = {"memory.enable_memory_arena_shrinkage",
                                         "disable_synchronize_execution_providers",
                                         "gpu_graph_id",
                                         "only_execute_path_to_fetches",
                                         "qnn.htp_perf_mode",
                                         "qnn.htp_perf_mode_post_run",
                                         "qnn.rpc_control_latency",
                                         "qnn.lora_config"};

bool is_known(const std::string& key) {
  for (std::string_view known : kKeys)
    if (key == known) return true;
  for (std::string_view prefix : kPrefixes)
    if (key.starts_with(prefix)) return true;
  return false;
}

int number(const std::string& key, const std::string& value) {
  int result = 0;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc() || end != value.data() + value.size())
    fail(Code::invalid_argument, "session configuration '", key, "' needs a whole number, found '", value, "'");
  return result;
}

bool flag(const std::string& key, const std::string& value) {
  if (value == "1" || value == "true" || value == "True") return true;
  if (value == "0" || value == "false" || value == "False") return false;
  fail(Code::invalid_argument, "session configuration '", key, "' must be 0 or 1, found '", value, "'");
}

OptLevel level(const std::string& key, const std::string& value) {
  switch (int n = number(key, value)) {
    case 0:
      return OptLevel::none;
    case 1:
      return OptLevel::basic;
    case 2:
      return OptLevel::extended;
    case 3:
      return OptLevel::layout;
    case 99:
      return OptLevel::all;
    default:
      fail(Code::invalid_argument, "session configuration '", key, "' must be 0, 1, 2, 3 or 99, found ", n);
  }
}

}  // namespace

void set_config(SessionOptions& options, const std::string& key, const std::string& value) {
  if (key.empty() || key.size() > 1024)
    throw std::runtime_error("Config key is empty or longer than maximum length 1024");
  if (value.size() > 8192)
    throw std::runtime_error(cat("Config value of '", key, "' is longer than maximum length 8192"));
  if (key == "session.intra_op_num_threads") options.intra_op_threads = number(key, value);
  if (key == "session.inter_op_num_threads") options.inter_op_threads = number(key, value);
  if (key == "session.graph_optimization_level") options.optimization_level = level(key, value);
  if (key == "session.execution_mode") options.parallel_execution = number(key, value) != 0;
  if (key == "session.enable_cpu_mem_arena") options.enable_cpu_mem_arena = flag(key, value);
  if (key == "session.enable_mem_pattern") options.enable_mem_pattern = flag(key, value);
  if (key == "session.enable_profiling") options.enable_profiling = flag(key, value);
  if (key == "session.log_id") options.log_id = value;
  if (key == "session.log_severity_level") options.log_severity = number(key, value);
  if (key == "session.log_verbosity_level") options.log_verbosity = number(key, value);
  if (key == "session.optimized_model_filepath") options.optimized_model_path = value;
  options.config[key] = value;
}

std::vector<std::string> unknown_config_keys(const SessionOptions& options) {
  std::vector<std::string> sentences;
  for (const auto& [key, value] : options.config)
    if (!is_known(key))
      sentences.push_back(
          cat("session configuration '", key, "' is not known and has no effect.", did_you_mean(key, kKeys)));
  return sentences;
}

bool known_run_config_key(const std::string& key, std::string& hint) {
  for (std::string_view known : kRunKeys)
    if (key == known) return true;
  hint = cat("run configuration '", key, "' is not known and has no effect.", did_you_mean(key, kRunKeys));
  return key.starts_with("qnn.") || key.starts_with("epona.");
}

}  // namespace epona
