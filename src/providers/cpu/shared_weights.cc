#include "providers/cpu/shared_weights.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "kernels/isa.h"

namespace epona::cpu {
namespace {

struct Entry {
  // Not held: that memory at the same address is the same memory is seen by its control block, which the weak pointer
  // keeps from being used again.
  std::weak_ptr<void> owner;
  const void* data;
  size_t bytes;
  std::array<int64_t, 3> how;
  Isa isa;
  std::weak_ptr<void> packed;
};

}  // namespace

std::shared_ptr<void> share_packed(const Tensor& constant, const std::array<int64_t, 3>& how,
                                   const std::function<std::shared_ptr<void>()>& pack) {
  static std::mutex mutex;
  static std::vector<Entry> entries;
  if (!constant.owner) return pack();
  const auto same = [&](const Entry& e) {
    return !e.owner.owner_before(constant.owner) && !constant.owner.owner_before(e.owner) && e.data == constant.data &&
           e.bytes == constant.bytes() && e.how == how && e.isa == isa();
  };
  {
    std::lock_guard lock(mutex);
    std::erase_if(entries, [](const Entry& e) { return e.packed.expired(); });
    const auto found = std::find_if(entries.begin(), entries.end(), same);
    if (found != entries.end())
      if (auto packed = found->packed.lock()) return packed;
  }
  auto packed = pack();
  std::lock_guard lock(mutex);
  entries.push_back({constant.owner, constant.data, constant.bytes(), how, isa(), packed});
  return packed;
}

}  // namespace epona::cpu
