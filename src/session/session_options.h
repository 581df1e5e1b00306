#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/tensor.h"
#include "passes/pass.h"

namespace epona {

/// A provider asked for by name, with its options as text.
struct ProviderRequest {
  std::string name;
  std::map<std::string, std::string> options;
};

/// Everything that can be set before a session is made.
struct SessionOptions {
  OptLevel optimization_level = OptLevel::all;
  int intra_op_threads = 0;  ///< 0: as many as cpu_budget() allows
  int inter_op_threads = 0;  ///< accepted, unused: nodes run one after another
  bool parallel_execution = false;
  bool enable_cpu_mem_arena = true, enable_mem_pattern = true, enable_mem_reuse = true;
  bool enable_profiling = false;
  std::string profile_file_prefix = "epona_profile";
  std::string optimized_model_path;
  std::string log_id;
  int log_severity = -1;  ///< -1: the process default
  int log_verbosity = 0;
  std::map<std::string, std::string> config;
  std::map<std::string, int64_t> dim_by_symbol, dim_by_denotation;
  bool refuse_unknown_dims = false;  ///< an override of a dimension that no input has: UnknownDimension, not a warning
  std::set<std::string> disabled_passes;
  std::string dump_after;  ///< print the graph (stderr) after the pass of this name
  std::vector<ProviderRequest> providers;
  std::map<std::string, Tensor> initializers;  ///< take the place of the model's
  std::map<std::string, Tensor> files;         ///< bytes in memory that stand for files of external data, by location
  /// Set from any thread: a session that is being made with these options, or a copy of them, stops with
  /// Code::model_load_canceled.
  std::shared_ptr<std::atomic<bool>> cancel_load = std::make_shared<std::atomic<bool>>(false);
};

/// Options of one run.
struct RunOptions {
  std::atomic<bool> terminate{false};
  std::string tag;
  int log_severity = -1;
  int log_verbosity = 0;
  std::map<std::string, std::string> config;
};

}  // namespace epona
