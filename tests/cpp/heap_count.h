#pragma once
#include <cstddef>

namespace epona::test {

/// Calls of operator new and aligned_alloc in this process so far (counted by heap_count.cc).
size_t heap_allocations();

}  // namespace epona::test
