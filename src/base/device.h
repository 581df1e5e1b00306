#pragma once
#include <cstddef>
#include <memory>
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
///
/// Every session has Device objects of its own, with its memory limit and its stream; those of one name share the
/// hardware's memory, so that what one of them allocated can be read through another. Lives in a shared_ptr: values keep
/// the Device that made them.
class Device : public std::enable_shared_from_this<Device> {
 public:
  Device(std::string type, int id) : type_(std::move(type)), id_(id), name_(cat(type_, ":", id)) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& type() const { return type_; }  ///< "cuda": as device_type in the Python API
  int id() const { return id_; }
  const std::string& name() const { return name_; }  ///< "cuda:0"
  bool same_memory(const Device& other) const { return this == &other || name_ == other.name_; }

  /// 64-byte aligned. Throws ProviderFailure when the memory or the provider's limit is used up.
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory, size_t bytes) noexcept = 0;
  /// Ordered with the kernels of the calling thread; the host memory may be reused, or read, when it returns.
  virtual void copy_from_host(void* to, const void* host, size_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* from, size_t bytes) = 0;
  /// Inside this memory; the two do not overlap.
  virtual void copy_within(void* to, const void* from, size_t bytes) = 0;
  /// Waits until everything that was asked of this object is done, so that others may read what it wrote.
  virtual void synchronize() {}
  /// The DLPack device type (2 for CUDA); 0 when others cannot use these addresses.
  virtual int dlpack_type() const { return 0; }

  /// Memory that gives itself back, to this object, when its last owner is gone. Never null.
  std::shared_ptr<void> make(size_t bytes);

 private:
  std::string type_;
  int id_;
  std::string name_;
};

/// Whether two devices share one memory; null is the host's.
inline bool same_memory(const Device* a, const Device* b) { return a == b || (a && b && a->same_memory(*b)); }

/// Copies between any two memories; null is the host's.
void copy_bytes(void* to, Device* to_device, const void* from, Device* from_device, size_t bytes);

}  // namespace epona
