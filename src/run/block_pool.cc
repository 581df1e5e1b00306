#include "run/block_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace epona {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

void* allocate(size_t bytes) {
  size_t alignment = bytes >= kHugePage ? kHugePage : 64;
  void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!memory) fail(Code::fail, "out of memory: ", bytes, " bytes for the values of a run");
  if (alignment == kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

BlockPool::~BlockPool() {
  for (Block& block : idle_) destroy(block);
}

Block BlockPool::take(size_t bytes, const void* preferred) {
  if (bytes == 0) return {};
  {
    std::lock_guard lock(mutex_);
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      if (it->bytes < bytes) continue;
      if (it->memory == preferred) {
        best = it;
        break;
      }
      if (best == idle_.end() || it->bytes < best->bytes) best = it;
    }
    if (best != idle_.end()) {
      Block block = *best;
      idle_.erase(best);
      return block;
    }
    // Growing: the largest idle block would never be used again.
    if (!idle_.empty()) {
      auto largest = std::max_element(idle_.begin(), idle_.end(),
                                      [](const Block& a, const Block& b) { return a.bytes < b.bytes; });
      destroy(*largest);
      idle_.erase(largest);
    }
  }
  return make(bytes);
}

Block BlockPool::make(size_t bytes) const {
  if (device_) return {device_->allocate(bytes), bytes};
  // 64 spare bytes: vector loads of the last elements may run over the end.
  return {allocate(bytes + 64), bytes};
}

void BlockPool::destroy(Block block) const {
  if (device_)
    device_->release(block.memory, block.bytes);
  else
    std::free(block.memory);
}

void BlockPool::give(Block block) {
  if (!block.memory) return;
  std::lock_guard lock(mutex_);
  idle_.push_back(block);
}

}  // namespace epona
