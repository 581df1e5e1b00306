#include <sched.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "base/process_settings.h"
#include "base/thread_pool.h"

namespace epona {
namespace {

int affinity_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

/// Processors of a cgroup CPU quota, rounded up; 0 when there is none.
int cgroup_quota() {
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period && quota != "max" && period > 0)
    return std::max(1, static_cast<int>(std::stod(quota) / period + 0.999));
  double v1_quota = 0, v1_period = 0;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> v1_quota;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> v1_period;
  if (v1_quota > 0 && v1_period > 0) return std::max(1, static_cast<int>(v1_quota / v1_period + 0.999));
  return 0;
}

std::atomic<int> default_threads{0};
std::atomic<bool> seed_set{false};
std::atomic<int64_t> seed_value{0};

}  // namespace

void set_default_threads(int threads) { default_threads = threads; }

void set_process_seed(int64_t seed) {
  seed_value = seed;
  seed_set = true;
}

std::optional<int64_t> process_seed() {
  if (!seed_set) return std::nullopt;
  return seed_value.load();
}

int cpu_budget() {
  if (int threads = default_threads; threads > 0) return threads;
  int count = affinity_count();
  if (int quota = cgroup_quota(); quota > 0) count = std::min(count, quota);
  return count;
}

}  // namespace epona
