#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "run/step_observer.h"

namespace epona {

/// Collects what a session does and writes it as a Chrome trace (chrome://tracing, Perfetto).
class Profiler final : public StepObserver {
 public:
  /// `prefix` begins the name of the file. Times count from `begin_ns` of now_ns().
  Profiler(std::string prefix, int64_t begin_ns);

  void values(const RunContext& context, uint64_t constants) override;
  void step(const Node& node, const std::string& provider, int64_t begin_ns, int64_t end_ns) override;
  /// A phase of the session's own, as "model_run".
  void session_event(const std::string& name, int64_t begin_ns, int64_t end_ns);

  bool active() const { return active_; }
  /// When it began, in nanoseconds of the system clock.
  uint64_t start_time_ns() const { return wall_start_ns_; }
  /// Writes the file and collects no more. Returns its name; empty when it was written before.
  std::string finish();

  static int64_t now_ns();

  /// One run of a session, as an event from beginning to end.
  class Run {
   public:
    explicit Run(Profiler* profiler)
        : profiler_(profiler && profiler->active() ? profiler : nullptr), begin_ns_(profiler_ ? now_ns() : 0) {}
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run() {
      if (profiler_) profiler_->session_event("model_run", begin_ns_, now_ns());
    }
    RunObserver* observer() const { return profiler_; }

   private:
    Profiler* profiler_;
    int64_t begin_ns_;
  };

 private:
  using Typed = std::vector<std::pair<DataType, Shape>>;  ///< of the tensors among the values
  struct Values {
    Typed inputs, outputs;
    size_t constant_bytes = 0, input_bytes = 0, output_bytes = 0;
  };
  struct Event {
    bool is_node;
    int thread, index;
    std::string name, op, provider;
    int64_t begin_ns, end_ns;
    Values values;
  };
  static thread_local Values shown_;  ///< by values(), for the step() that follows on the same thread

  std::string prefix_;
  int64_t start_ns_;
  uint64_t wall_start_ns_;
  std::atomic<bool> active_{true};
  std::mutex mutex_;
  std::vector<Event> events_;
  std::map<const Node*, int> indices_;
};

}  // namespace epona
