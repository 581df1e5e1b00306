#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include <pthread.h>

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

// A child of fork() has the memory of the workers, and none of the workers.
std::atomic<uint32_t> forks{0};
std::mutex revival;  // one thread gives a pool new workers; held over a fork, so that a child finds it free

void watch_forks() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork([] { revival.lock(); }, [] { revival.unlock(); },
                   [] {
                     forks.fetch_add(1, std::memory_order_release);
                     revival.unlock();
                   });
  });
}

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

/// The workers of a pool, and what they and its callers share.
struct Crew {
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
  const uint32_t born = forks.load(std::memory_order_acquire);  // forks before these workers were hired

  Crew(bool with_spin, std::chrono::microseconds time) : spin(with_spin), spin_time(time) {}
  ~Crew() {
    stop = true;
    generation.fetch_add(1);
    generation.notify_all();
    for (auto& worker : workers) worker.join();
  }

  bool lost_its_workers() const { return born != forks.load(std::memory_order_acquire); }

  /// Returns how many threads take part, the caller included.
  int hire(int threads) {
    workers.reserve(static_cast<size_t>(threads - 1));
    try {
      for (int i = 1; i < threads; ++i) workers.emplace_back([this] { worker(); });
    } catch (const std::system_error&) {  // the system gives no more threads: go on with those that are there
    }
    return static_cast<int>(workers.size()) + 1;
  }

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

}  // namespace

struct ThreadPool::Impl {
  std::atomic<Crew*> crew;

  explicit Impl(Crew* first) : crew(first) {}
  ~Impl() {
    // Nobody can join a thread that is not there.
    if (Crew* last = crew; !last->lost_its_workers()) delete last;
  }

  Crew& working_crew(int threads) {
    Crew* now = crew.load(std::memory_order_acquire);
    if (!now->lost_its_workers()) return *now;
    std::lock_guard lock(revival);
    now = crew.load(std::memory_order_acquire);
    if (now->lost_its_workers()) {
      now = new Crew(now->spin, now->spin_time);
      now->hire(threads);
      crew.store(now, std::memory_order_release);
    }
    return *now;
  }
};

ThreadPool::ThreadPool(const ThreadPoolOptions& options) {
  watch_forks();
  auto crew = std::make_unique<Crew>(options.spin, std::chrono::microseconds(options.spin_microseconds));
  threads_ = crew->hire(options.threads > 0 ? options.threads : cpu_budget());
  impl_ = std::make_unique<Impl>(crew.release());
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run(int64_t tasks, FunctionRef<void(int64_t)> fn) {
  if (tasks <= 0) return;
  if (tasks == 1 || threads_ == 1 || inside_task) {
    for (int64_t task = 0; task < tasks; ++task) fn(task);
    return;
  }
  Crew& crew = impl_->working_crew(threads_);
  std::unique_lock lock(crew.busy, std::try_to_lock);
  if (!lock.owns_lock()) {
    for (int64_t task = 0; task < tasks; ++task) fn(task);
    return;
  }
  Job job(fn, tasks);
  crew.job.store(&job, std::memory_order_seq_cst);
  crew.announce();
  job.work();
  // No worker may enter after this store; those inside are counted by `active`.
  crew.job.store(nullptr, std::memory_order_seq_cst);
  while (crew.active.load(std::memory_order_seq_cst) > 0) cpu_relax();
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
