#pragma once
#include <atomic>
#include <cstdint>

#include "graph/tensor.h"
#include "providers/device.h"

namespace epona::testing {

/// A pretend device: memory whose bytes are scrambled with a key of its own, so that whoever reads it without the copy
/// that should have been there computes a wrong answer.
class TestDevice final : public Device {
 public:
  TestDevice(std::string provider, int id, unsigned char key, int64_t limit)
      : provider_(std::move(provider)), name_("test:" + std::to_string(id)), key_(key), limit_(limit) {}

  std::string name() const override { return name_; }
  void* allocate(size_t bytes) override;
  void release(void* memory, size_t bytes) noexcept override;
  void copy_from_host(void* to, const void* host, size_t bytes) override { scramble(to, host, bytes); }
  void copy_to_host(void* host, const void* from, size_t bytes) override { scramble(host, from, bytes); }

  void set_limit(int64_t bytes) { limit_ = bytes; }
  int64_t used() const { return used_; }

 private:
  void scramble(void* to, const void* from, size_t bytes) const;

  std::string provider_, name_;
  unsigned char key_;
  std::atomic<int64_t> limit_, used_{0};
};

}  // namespace epona::testing
