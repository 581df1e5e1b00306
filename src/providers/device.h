#pragma once
#include <cstddef>
#include <string>
#include <utility>

#include "base/error.h"

namespace epona {

/// A provider failed where the next one may do better: out of memory, a kernel that failed. Code::ep_fail.
class ProviderFailure final : public Error {
 public:
  ProviderFailure(std::string provider, const std::string& message)
      : Error(Code::ep_fail, message), provider_(std::move(provider)) {}
  const std::string& provider() const { return provider_; }

 private:
  std::string provider_;
};

/// Memory that a provider's kernels work in and the CPU cannot read. Addresses are raw pointers into it, so the planner's
/// offsets serve every memory. A provider that works in the host's memory has none. Used by many threads at once.
class Device {
 public:
  virtual ~Device() = default;
  /// "cuda:0": for reports.
  virtual std::string name() const = 0;
  /// 64-byte aligned. Throws ProviderFailure when the memory or the provider's limit is used up.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory, size_t bytes) noexcept = 0;
  /// Ordered with the kernels of the calling thread; the host memory may be reused, or read, when it returns.
  virtual void copy_from_host(void* to, const void* host, size_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* from, size_t bytes) = 0;
};

}  // namespace epona
