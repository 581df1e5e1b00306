#include "session/session.h"

#include <algorithm>
#include <thread>

#include "kernels/isa.h"
#include "passes/pass_names.h"
#include "providers/registry.h"
#include "session/choose_providers.h"
#include "session/config_keys.h"
#include "session/rethrow.h"

namespace epona {
LoadOptions load_options(const SessionOptions& options) {
  return {options.dim_by_symbol, options.dim_by_denotation, options.initializers,
          options.files,         options.cancel_load.get(), options.refuse_unknown_dims};
}

std::shared_ptr<const Executable> build_from_files(Model& model, const SessionOptions& options) {
  const ModelSource source = model.source;
  try {
    auto executable = build_executable(model, options);
    refuse_changed_files(source);
    return executable;
  } catch (...) {
    refuse_changed_files(source);  // which then is the cause
    throw;
  }
}

Session::~Session() {
  try {
    end_profiling();
  } catch (const std::exception& error) {
    log(Severity::error, log_threshold(options_), options_.log_id, error.what());
  }
}

Session::Session(const std::filesystem::path& path, const SessionOptions& options) : options_(options) {
  Stopwatch watch;
  model_ = load_model(path, load_options(options));
  load_ms_ = watch.lap();
  initialize();
}

Session::Session(std::span<const std::byte> model, const SessionOptions& options) : options_(options) {
  Stopwatch watch;
  // A provider that fails hands over to the next, for which the model is read again: then the bytes must be kept.
  bool others = std::any_of(options.providers.begin(), options.providers.end(),
                            [](const ProviderRequest& request) { return request.name != cpu_provider_def().name; });
  if (others) {
    auto copy = std::make_shared<std::vector<std::byte>>(model.begin(), model.end());
    model_ = load_model({copy->data(), copy->size()}, copy, load_options(options));
  } else {
    model_ = load_model(model, load_options(options));
  }
  load_ms_ = watch.lap();
  initialize();
}

Session::Session(std::span<const std::byte> model, std::shared_ptr<void> owner, const SessionOptions& options)
    : options_(options) {
  Stopwatch watch;
  model_ = load_model(model, std::move(owner), load_options(options));
  load_ms_ = watch.lap();
  initialize();
}

void Session::initialize() try {
  MappingGuard guard;
  int64_t begin_ns = Profiler::now_ns();
  if (options_.enable_profiling) {
    int64_t load_begin_ns = begin_ns - static_cast<int64_t>(load_ms_ * 1e6);
    profiler_ = std::make_unique<Profiler>(options_.profile_file_prefix, load_begin_ns);
    profiler_->session_event(model_.source.path.empty() ? "model_loading_array" : "model_loading_uri", load_begin_ns,
                             begin_ns);
  }
  init_isa();
  if (options_.log_severity < -1 || options_.log_severity > 4)
    fail(Code::runtime_exception,
         "Invalid session log severity level. Not a valid severity value: ", options_.log_severity);
  for (const std::string& warning : model_.warnings)
    log(Severity::warning, log_threshold(options_), options_.log_id, warning);
  for (const std::string& warning : unknown_config_keys(options_))
    log(Severity::warning, log_threshold(options_), options_.log_id, warning);
  disable_named_passes();
  describe_io();
  run_fallback_ = fallback_policy(options_) != FallbackPolicy::forbid;
  executable_ = build_from_files(model_, options_);
  make_pool();
  options_.cancel_load.reset();  // it has been loaded: planning it anew is another matter
  if (profiler_) profiler_->session_event("session_initialization", begin_ns, Profiler::now_ns());
} catch (...) {
  rethrow_as_error("the session was made");
}

/// "ConstantFolding;GeluFusion" in the session configuration.
void Session::disable_named_passes() {
  constexpr const char* kKey = "optimization.disable_specified_optimizers";
  std::string text = config_value(options_, kKey);
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find(';', at), text.size());
    std::string name = text.substr(at, end - at);
    if (name.empty()) continue;
    if (std::string pass = find_pass(name); !pass.empty())
      options_.disabled_passes.insert(pass);
    else
      log(Severity::warning, log_threshold(options_), options_.log_id, cat(kKey, ": ", unknown_pass(name)));
  }
}

std::string Session::end_profiling() { return profiler_ ? profiler_->finish() : ""; }

void Session::describe_io() {
  const Graph& graph = *model_.graph;
  for (ValueId id : graph.inputs) {
    const Value& value = graph.values[id];
    (value.constant ? overridable_ : inputs_).push_back({value.name, value.type});
  }
  int fed = 0, overridable = static_cast<int>(inputs_.size());
  for (ValueId id : graph.inputs) feed_order_.push_back(graph.values[id].constant ? overridable++ : fed++);
  for (ValueId id : graph.outputs) outputs_.push_back({graph.values[id].name, graph.values[id].type});
}

void Session::make_pool() {
  ThreadPoolOptions pool;
  pool.threads = options_.intra_op_threads > 0 ? options_.intra_op_threads : 0;
  // More than this many are a mistake, and may be more than the machine can bear.
  int most = std::max(256, 4 * static_cast<int>(std::thread::hardware_concurrency()));
  if (pool.threads > most) {
    log(Severity::warning, log_threshold(options_), options_.log_id,
        cat("intra_op_num_threads is ", pool.threads, "; ", most, " threads are used"));
    pool.threads = most;
  }
  pool.spin = config_value(options_, "session.intra_op.allow_spinning", "1") != "0";
  pool_ = std::make_unique<ThreadPool>(pool);
}

std::shared_ptr<const Executable> Session::executable() const {
  std::lock_guard lock(mutex_);
  return executable_;
}

std::vector<std::string> Session::providers() const {
  std::vector<std::string> names;
  for (const ActiveProvider& active : executable()->providers) names.push_back(active.def->name);
  return names;
}

std::vector<std::pair<std::string, double>> Session::creation_times() const {
  std::vector<std::pair<std::string, double>> times{{"load", load_ms_}};
  auto executable = this->executable();
  times.insert(times.end(), executable->creation_times.begin(), executable->creation_times.end());
  return times;
}

PlacementReport Session::placement_report() const {
  auto executable = this->executable();
  return {model_.graph_name, executable->placement, executable->passes, creation_times()};
}

}  // namespace epona
