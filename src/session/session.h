#pragma once
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/thread_pool.h"
#include "model/model.h"
#include "placement/report.h"
#include "session/executable.h"
#include "session/profiler.h"

namespace epona {

/// An input or output of a model.
struct IoInfo {
  std::string name;
  Type type;
};

/// A model made ready to run on the providers asked for. run() may be called by many threads at once.
class Session {
 public:
  explicit Session(const std::filesystem::path& path, const SessionOptions& options = {});
  explicit Session(std::span<const std::byte> model, const SessionOptions& options = {});
  /// Without a copy: `owner` keeps the bytes alive and unchanged as long as the session lives.
  Session(std::span<const std::byte> model, std::shared_ptr<void> owner, const SessionOptions& options = {});
  ~Session();

  const std::vector<IoInfo>& inputs() const { return inputs_; }  ///< must be fed
  const std::vector<IoInfo>& outputs() const { return outputs_; }
  const std::vector<IoInfo>& overridable_initializers() const { return overridable_; }
  const Model& model() const { return model_; }  ///< its graph is gone: metadata only
  const SessionOptions& options() const { return options_; }
  /// What runs now: providers, placement, passes, plan.
  std::shared_ptr<const Executable> executable() const;
  std::vector<std::string> providers() const;  ///< the active ones, in order
  std::vector<std::pair<std::string, OptionMap>> provider_options()
      const;  ///< every effective value of the active ones
  /// Places and plans the model anew, from memory. On an error the session stays as it was; runs in flight finish on the
  /// old plan.
  void set_providers(std::vector<ProviderRequest> requests);
  /// Changes options while the session lives. Keys are those of the active providers' schemas that are marked live, or
  /// ep.dynamic.KEY. Throws, and changes nothing, when one is unknown or cannot be changed.
  void set_dynamic_options(const OptionMap& options);
  /// Whether a provider that fails while running hands over to the next (session.fallback says so at first).
  void allow_run_fallback(bool on) { run_fallback_ = on; }
  bool run_fallback_allowed() const { return run_fallback_; }
  Placement placement() const { return executable()->placement; }
  PlacementReport placement_report() const;
  std::vector<PassRecord> passes() const { return executable()->passes; }
  /// Creation phases with milliseconds, in order: load, providers, passes, plan.
  std::vector<std::pair<std::string, double>> creation_times() const;

  /// Runs the model. `names[i]` is fed with `values[i]`; the result has one value for each wanted output.
  /// Checks names, types, ranks and fixed dims. An output given in `preallocated` (same order as `wanted`, or empty) with
  /// memory is written in place.
  std::vector<RuntimeValue> run(std::span<const std::string> names, std::span<const RuntimeValue> values,
                                std::span<const std::string> wanted, const RunOptions* options = nullptr,
                                RunObserver* observer = nullptr, std::vector<RuntimeValue> preallocated = {}) const;

  /// The same without names and without allocation of its own: `values` in the order of inputs() followed by
  /// overridable_initializers() (which may be missing or of kind none), `results` in the order of outputs(). Values may be
  /// in the memory of devices, and results are left where they ask for it (Tensor::wanted_on). `interrupter` may end the
  /// run.
  void run_positional(std::span<const RuntimeValue> values, std::span<RuntimeValue> results,
                      const RunOptions* options = nullptr, RunObserver* observer = nullptr,
                      Interrupter* interrupter = nullptr) const;

  /// The device of this session that shares the memory of `device`, so that the session's limit counts; `device` itself
  /// when there is none.
  std::shared_ptr<Device> own_device(const std::shared_ptr<Device>& device) const;
  /// Where each of inputs() is read, and each of outputs() made: null is the host's memory.
  std::vector<std::shared_ptr<Device>> input_devices() const;
  std::vector<std::shared_ptr<Device>> output_devices() const;

  /// Writes the profile (SessionOptions.enable_profiling) and returns the file's name; empty when there is none.
  std::string end_profiling();
  const Profiler* profiler() const { return profiler_.get(); }

 private:
  void initialize();
  OptionMap given_now(const ActiveProvider& active) const;
  std::shared_ptr<const Executable> rebuild(const SessionOptions& options) const;
  /// After `provider` failed in a run on `failed`: plans without it, unless another thread has done so.
  void leave_provider(const std::string& provider, const std::string& cause,
                      const std::shared_ptr<const Executable>& failed) const;
  void disable_named_passes();
  void describe_io();
  void make_pool();
  void execute(std::span<const RuntimeValue> values, std::span<RuntimeValue> results, const RunEnv& env) const;
  void check_feed(size_t input, const RuntimeValue& value) const;

  SessionOptions options_;
  Model model_;
  std::vector<IoInfo> inputs_, outputs_, overridable_;
  std::vector<int> feed_order_;  ///< graph input -> position in inputs_ then overridable_
  double load_ms_ = 0;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Profiler> profiler_;
  std::atomic<bool> run_fallback_{true};
  mutable std::mutex rebuild_mutex_;  ///< one rebuild at a time; never taken by a run that goes well
  mutable std::mutex mutex_;          ///< of executable_
  mutable std::shared_ptr<const Executable> executable_;
};

}  // namespace epona
