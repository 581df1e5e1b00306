#include "base/device.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace epona {

std::shared_ptr<void> Device::make(size_t bytes) {
  bytes = std::max<size_t>(bytes, 1);
  std::shared_ptr<Device> self = shared_from_this();
  void* memory = allocate(bytes);
  return {memory, [self = std::move(self), bytes](void* released) { self->release(released, bytes); }};
}

void copy_bytes(void* to, Device* to_device, const void* from, Device* from_device, size_t bytes) {
  if (bytes == 0) return;
  if (!to_device && !from_device) {
    std::memmove(to, from, bytes);
  } else if (!from_device) {
    to_device->copy_from_host(to, from, bytes);
  } else if (!to_device) {
    from_device->copy_to_host(to, from, bytes);
  } else if (to_device->same_memory(*from_device)) {
    // Another session may still be writing what is read here.
    if (to_device != from_device) from_device->synchronize();
    to_device->copy_within(to, from, bytes);
  } else {
    std::vector<char> staged(bytes);
    from_device->copy_to_host(staged.data(), from, bytes);
    to_device->copy_from_host(to, staged.data(), bytes);
  }
}

}  // namespace epona
