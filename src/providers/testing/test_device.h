#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "base/device.h"

namespace epona::testing {

/// What all devices of one name have copied since the process began.
struct Traffic {
  std::atomic<int64_t> to_device{0}, to_device_bytes{0}, to_host{0}, to_host_bytes{0}, within{0}, within_bytes{0};
  std::atomic<int64_t> used{0};  ///< bytes in use now
};

/// By device name; counted from the first call on.
Traffic& traffic_of(const std::string& device_name);

/// A pretend device: memory whose bytes are scrambled with a key of its own, so that whoever reads it without the copy
/// that should have been there computes a wrong answer.
class TestDevice final : public Device {
 public:
  TestDevice(std::string provider, std::string type, int id, unsigned char first_key, int64_t limit)
      : Device(std::move(type), id),
        provider_(std::move(provider)),
        key_(static_cast<unsigned char>(first_key + 0x11 * id)),
        limit_(limit),
        traffic_(traffic_of(name())) {}

  void* allocate(size_t bytes) override;
  void release(void* memory, size_t bytes) noexcept override;
  void copy_from_host(void* to, const void* host, size_t bytes) override;
  void copy_to_host(void* host, const void* from, size_t bytes) override;
  void copy_within(void* to, const void* from, size_t bytes) override;

  /// What only its kernels may do: they see the elements without a copy that counts.
  void scramble(void* to, const void* from, size_t bytes) const;

  void set_limit(int64_t bytes) { limit_ = bytes; }
  int64_t used() const { return used_; }

 private:
  std::string provider_;
  unsigned char key_;
  std::atomic<int64_t> limit_, used_{0};
  Traffic& traffic_;
};

}  // namespace epona::testing
