#pragma once
#include <chrono>

namespace epona {

/// Lets the caller of a run look up while it goes on: poll() is called between two kernels once the run has lasted a
/// while, and again after as long. What it throws ends the run. Of one run, in one thread.
class Interrupter {
 public:
  virtual ~Interrupter() = default;

  /// The clock takes 20 ns, which short kernels must not pay each.
  void between_kernels() {
    if (++calls_ % 16 == 0) look_up();
  }

 protected:
  virtual void poll() = 0;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPeriod = std::chrono::milliseconds(200);

  void look_up() {
    auto now = Clock::now();
    bool first = next_ == Clock::time_point();
    if (!first && now < next_) return;
    if (!first) poll();
    next_ = now + kPeriod;
  }

  unsigned calls_ = 0;
  Clock::time_point next_;
};

}  // namespace epona
