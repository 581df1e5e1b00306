#pragma once
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/thread_pool.h"
#include "model/model.h"
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
  ~Session();

  const std::vector<IoInfo>& inputs() const { return inputs_; }  ///< must be fed
  const std::vector<IoInfo>& outputs() const { return outputs_; }
  const std::vector<IoInfo>& overridable_initializers() const { return overridable_; }
  const Model& model() const { return model_; }  ///< its graph is gone: metadata only
  const SessionOptions& options() const { return options_; }
  /// What runs now: providers, placement, passes, plan.
  std::shared_ptr<const Executable> executable() const;
  std::vector<std::string> providers() const;  ///< the active ones, in order
  Placement placement() const { return executable()->placement; }
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
  /// overridable_initializers() (which may be missing or of kind none), `results` in the order of outputs().
  void run_positional(std::span<const RuntimeValue> values, std::span<RuntimeValue> results,
                      const RunOptions* options = nullptr, RunObserver* observer = nullptr) const;

  /// Writes the profile (SessionOptions.enable_profiling) and returns the file's name; empty when there is none.
  std::string end_profiling();
  const Profiler* profiler() const { return profiler_.get(); }

 private:
  void initialize();
  void describe_io();
  void make_pool();
  void check_feed(size_t input, const RuntimeValue& value) const;

  SessionOptions options_;
  Model model_;
  std::vector<IoInfo> inputs_, outputs_, overridable_;
  std::vector<int> feed_order_;  ///< graph input -> position in inputs_ then overridable_
  double load_ms_ = 0;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Profiler> profiler_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Executable> executable_;
};

}  // namespace epona
