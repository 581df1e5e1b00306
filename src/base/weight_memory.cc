#include "base/weight_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/error.h"

namespace epona {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// Chunks double from the smallest to the largest, so that a small model pays for no more than twice what it needs.
constexpr size_t kSmallest = size_t{64} << 10, kLargest = size_t{32} << 20;

struct Chunk {
  char* memory;
  size_t bytes, used = 0;

  explicit Chunk(size_t size) : bytes(size) {
    const size_t alignment = bytes >= kHugePage ? kHugePage : 64;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    memory = static_cast<char*>(std::aligned_alloc(alignment, bytes));
    if (!memory) fail(Code::fail, "out of memory: ", bytes, " bytes for packed weights");
    if (alignment == kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);
  }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  ~Chunk() { std::free(memory); }
};

}  // namespace

std::shared_ptr<void> allocate_weights(size_t bytes) {
  static std::mutex mutex;
  static std::weak_ptr<Chunk> current;
  // Vector loads of the last elements may run over the end.
  const size_t need = (bytes + 63) / 64 * 64 + 64;
  std::lock_guard lock(mutex);
  std::shared_ptr<Chunk> chunk = current.lock();
  if (!chunk || chunk->bytes - chunk->used < need) {
    const size_t size = chunk ? std::min(chunk->bytes * 2, kLargest) : kSmallest;
    // What does not fit the largest chunk gets one of its own, and the current one stays.
    if (need > size / 2 && need > kLargest / 4) {
      auto own = std::make_shared<Chunk>(need);
      return {own, own->memory};
    }
    chunk = std::make_shared<Chunk>(std::max(size, need));
    current = chunk;
  }
  void* at = chunk->memory + chunk->used;
  chunk->used += need;
  return {chunk, at};
}

}  // namespace epona
