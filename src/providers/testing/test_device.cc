#include "providers/testing/test_device.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace epona::testing {

Traffic& traffic_of(const std::string& device_name) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, Traffic>;
  std::lock_guard lock(mutex);
  return all[device_name];
}

void* TestDevice::allocate(size_t bytes) {
  auto wanted = static_cast<int64_t>(bytes);
  int64_t used = used_.fetch_add(wanted) + wanted;
  if (used > limit_) {
    used_ -= wanted;
    throw ProviderFailure(provider_, cat("out of memory on ", name(), ": ", wanted, " bytes more than the ",
                                         used - wanted, " in use exceed gpu_mem_limit=", limit_.load()));
  }
  // 64 spare bytes: vector loads of the last elements may run over the end.
  void* memory = std::aligned_alloc(64, (bytes + 64 + 63) / 64 * 64);
  if (!memory) {
    used_ -= wanted;
    throw ProviderFailure(provider_, cat("out of memory: ", bytes, " bytes for ", name()));
  }
  traffic_.used += wanted;
  return memory;
}

void TestDevice::release(void* memory, size_t bytes) noexcept {
  std::free(memory);
  used_ -= static_cast<int64_t>(bytes);
  traffic_.used -= static_cast<int64_t>(bytes);
}

void TestDevice::copy_from_host(void* to, const void* host, size_t bytes) {
  scramble(to, host, bytes);
  ++traffic_.to_device;
  traffic_.to_device_bytes += static_cast<int64_t>(bytes);
}

void TestDevice::copy_to_host(void* host, const void* from, size_t bytes) {
  scramble(host, from, bytes);
  ++traffic_.to_host;
  traffic_.to_host_bytes += static_cast<int64_t>(bytes);
}

void TestDevice::copy_within(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  ++traffic_.within;
  traffic_.within_bytes += static_cast<int64_t>(bytes);
}

void TestDevice::scramble(void* to, const void* from, size_t bytes) const {
  auto* out = static_cast<unsigned char*>(to);
  auto* in = static_cast<const unsigned char*>(from);
  for (size_t i = 0; i < bytes; ++i) out[i] = in[i] ^ key_;
}

}  // namespace epona::testing
