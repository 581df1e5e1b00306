#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace epona {
namespace {

// A hand-over to a spinning worker and back costs 1-2 us; a range has to be worth several of them.
constexpr double kMinRangeNs = 8000;

void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

thread_local bool inside_task = false;

/// One fork-join job, on the stack of the caller.
struct Job {
  Job(FunctionRef<void(int64_t)> work_fn, int64_t count) : fn(work_fn), tasks(count) {}
  FunctionRef<void(int64_t)> fn;
  int64_t tasks;
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::mutex error_mutex;

  void work() {
    bool outer = inside_task;
    inside_task = true;
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      try {
        if (!failed.load(std::memory_order_relaxed)) fn(task);
      } catch (...) {
        std::lock_guard lock(error_mutex);
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
    inside_task = outer;
  }
};

}  // namespace

struct ThreadPool::Impl {
  // state: generation in the high 32 bits; a worker sleeps on `generation` (futex through std::atomic::wait).
  std::atomic<uint32_t> generation{0};
  std::atomic<Job*> job{nullptr};
  std::atomic<int> active{0};  // workers that may touch *job
  std::atomic<int> sleeping{0};
  std::atomic<bool> stop{false};
  std::mutex busy;  // held by the caller whose job is running
  bool spin;
  std::chrono::microseconds spin_time;
  std::vector<std::thread> workers;

  void worker() {
    uint32_t seen = 0;
    while (true) {
      wait_for_change(seen);
      seen = generation.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_acquire)) return;
      active.fetch_add(1, std::memory_order_seq_cst);
      if (Job* current = job.load(std::memory_order_seq_cst)) current->work();
      active.fetch_sub(1, std::memory_order_release);
    }
  }

  void wait_for_change(uint32_t seen) {
    if (spin) {
      auto deadline = std::chrono::steady_clock::now() + spin_time;
      for (int i = 0;; ++i) {
        if (generation.load(std::memory_order_acquire) != seen) return;
        cpu_relax();
        if (i % 64 == 63 && std::chrono::steady_clock::now() >= deadline) break;
      }
    }
    sleeping.fetch_add(1, std::memory_order_seq_cst);
    generation.wait(seen, std::memory_order_seq_cst);
    sleeping.fetch_sub(1, std::memory_order_relaxed);
  }

  void announce() {
    generation.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping.load(std::memory_order_seq_cst) > 0) generation.notify_all();
  }
};

ThreadPool::ThreadPool(const ThreadPoolOptions& options)
    : impl_(std::make_unique<Impl>()), threads_(options.threads > 0 ? options.threads : cpu_budget()) {
  impl_->spin = options.spin;
  impl_->spin_time = std::chrono::microseconds(options.spin_microseconds);
  impl_->workers.reserve(static_cast<size_t>(threads_ - 1));
  try {
    for (int i = 1; i < threads_; ++i) impl_->workers.emplace_back([this] { impl_->worker(); });
  } catch (const std::system_error&) {  // the system gives no more threads: go on with those that are there
    threads_ = static_cast<int>(impl_->workers.size()) + 1;
  }
}

ThreadPool::~ThreadPool() {
  impl_->stop = true;
  impl_->generation.fetch_add(1);
  impl_->generation.notify_all();
  for (auto& worker : impl_->workers) worker.join();
}

void ThreadPool::run(int64_t tasks, FunctionRef<void(int64_t)> fn) {
  if (tasks <= 0) return;
  std::unique_lock lock(impl_->busy, std::defer_lock);
  if (tasks == 1 || threads_ == 1 || inside_task || !lock.try_lock()) {
    for (int64_t task = 0; task < tasks; ++task) fn(task);
    return;
  }
  Job job(fn, tasks);
  impl_->job.store(&job, std::memory_order_seq_cst);
  impl_->announce();
  job.work();
  // No worker may enter after this store; those inside are counted by `active`.
  impl_->job.store(nullptr, std::memory_order_seq_cst);
  while (impl_->active.load(std::memory_order_seq_cst) > 0) cpu_relax();
  lock.unlock();
  if (job.error) std::rethrow_exception(job.error);
}

void ThreadPool::parallel_for(int64_t n, double ns_per_item, FunctionRef<void(int64_t, int64_t)> fn) {
  if (n <= 0) return;
  double total = static_cast<double>(n) * ns_per_item;
  int64_t ranges = std::min<int64_t>(n, static_cast<int64_t>(total / kMinRangeNs));
  if (ranges <= 1 || threads_ == 1) {
    fn(0, n);
    return;
  }
  // More ranges than threads only when they are long: uneven cores then even out.
  ranges = std::min<int64_t>(ranges, total > 16 * kMinRangeNs * threads_ ? threads_ * 4 : threads_);
  run(ranges, [&](int64_t range) {
    int64_t begin = n * range / ranges, end = n * (range + 1) / ranges;
    if (begin < end) fn(begin, end);
  });
}

}  // namespace epona
