#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/function_ref.h"

namespace epona {

/// Options of a pool. Zero threads means: as many as cpu_budget() allows.
struct ThreadPoolOptions {
  int threads = 0;
  bool spin = true;            ///< waiting workers spin for a short time before they sleep
  int spin_microseconds = 50;  ///< how long a worker spins after its last job
};

/// A fork-join pool. The calling thread takes part in the work, so a pool of n threads owns n-1 workers.
/// Several threads may call into one pool at once: the second caller runs its job alone instead of waiting.
/// Nested calls from inside a task run inline.
class ThreadPool {
 public:
  explicit ThreadPool(const ThreadPoolOptions& options = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Calls fn(task) once for every task in [0, tasks), spread over the threads; returns when all are done.
  /// The first exception thrown by a task is rethrown here.
  void run(int64_t tasks, FunctionRef<void(int64_t)> fn);

  /// Splits [0, n) into contiguous ranges and calls fn(begin, end) on them. `ns_per_item` is the estimated cost of
  /// one item on one thread, in nanoseconds: a range is never worth less than a hand-over costs, so small work stays
  /// on the calling thread.
  void parallel_for(int64_t n, double ns_per_item, FunctionRef<void(int64_t, int64_t)> fn);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  int threads_;
};

/// Processors this process may use: the affinity mask, limited by the cgroup's CPU quota; at least 1.
int cpu_budget();

}  // namespace epona
