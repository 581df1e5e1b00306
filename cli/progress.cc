#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "commands.h"

namespace epona::cli {

struct Progress::Impl {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread thread;
};

Progress::Progress(std::string text) : impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([this, text = std::move(text)] {
    auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(impl_->mutex);
    while (!impl_->changed.wait_for(lock, std::chrono::seconds(2), [this] { return impl_->done; })) {
      auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count();
      std::fprintf(stderr, "%s: %lld s ...\n", text.c_str(), static_cast<long long>(seconds));
    }
  });
}

Progress::~Progress() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->done = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

}  // namespace epona::cli
