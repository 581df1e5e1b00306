// What the mutation test and the fuzzer share: made-up inputs, and an end to runs whose damaged trip count is 2^60.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "ops/dispatch.h"
#include "session/session.h"

namespace epona::test {

/// A small tensor of ones (sizes among them stay small); throws Error for a type that has no such tensor.
inline RuntimeValue made_up(const Type& type) {
  Shape shape;
  if (type.shape)
    for (const Dim& dim : *type.shape) shape.push_back(dim.known() ? std::min<int64_t>(dim.value, 64) : 2);
  if (!type.is_tensor() || shape.rank() > 8 || type_bytes(type.elem, shape.size()) > (1u << 20))
    fail(Code::invalid_argument, "no input for this type");
  Tensor tensor = Tensor::allocate(type.elem, shape);
  if (type.elem == DataType::string) return tensor;
  using Numbers = Types<float, double, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>;
  if (!dispatch(type.elem, Numbers{}, [&]<class T>() { std::fill_n(tensor.as<T>(), tensor.size(), T{1}); }))
    std::memset(tensor.data, 1, tensor.bytes());
  return tensor;
}

/// Sets RunOptions::terminate of a run that takes longer than two seconds.
class Watchdog {
 public:
  Watchdog()
      : thread_([this] {
          while (!done_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            std::lock_guard lock(mutex_);
            if (run_ && ++ticks_ > 20) run_->terminate = true;
          }
        }) {}
  ~Watchdog() {
    done_ = true;
    thread_.join();
  }

  /// Runs the session on made-up inputs under watch.
  void run(const Session& session) {
    std::vector<RuntimeValue> in, out(session.outputs().size());
    for (const IoInfo& input : session.inputs()) in.push_back(made_up(input.type));
    RunOptions options;
    const Guard guard(*this, options);
    session.run_positional(in, out, &options);
  }

 private:
  struct Guard {
    Guard(Watchdog& dog, RunOptions& options) : dog_(dog) { dog_.watch(&options); }
    ~Guard() { dog_.watch(nullptr); }
    Watchdog& dog_;
  };

  void watch(RunOptions* run) {
    std::lock_guard lock(mutex_);
    ticks_ = 0;
    run_ = run;
  }

  std::mutex mutex_;
  std::atomic<bool> done_{false};
  int ticks_ = 0;
  RunOptions* run_ = nullptr;
  std::thread thread_;  // last: it uses the others
};

}  // namespace epona::test
