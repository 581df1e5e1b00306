#include "heap_count.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "sanitizers.h"

namespace {
std::atomic<size_t> count{0};
}  // namespace

namespace epona::test {
size_t heap_allocations() { return count.load(); }
}  // namespace epona::test

#ifndef EPONA_SANITIZED
void* operator new(size_t bytes) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

// The library asks for its tensors and blocks here.
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  count.fetch_add(1, std::memory_order_relaxed);
  return memalign(alignment, bytes);
}
#endif
