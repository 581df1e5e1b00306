#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/thread_pool.h"

namespace epona {

/// Calls fn(slot, item) for every item in [0, items). Items that run at the same time have different slots, all below
/// pool.threads(): a slot owns a part of the workspace. Threads take the next item when they are done with one.
template <class F>
void parallel_items(ThreadPool& pool, int64_t items, double ns_per_item, F&& fn) {
  constexpr double kMinNs = 8000;  // less than this is not worth a hand-over
  const double total = static_cast<double>(items) * ns_per_item;
  const int64_t slots = std::min({items, static_cast<int64_t>(pool.threads()), static_cast<int64_t>(total / kMinNs)});
  if (slots <= 1) {
    for (int64_t item = 0; item < items; ++item) fn(0, item);
    return;
  }
  std::atomic<int64_t> next{0};
  pool.run(slots, [&](int64_t slot) {
    for (int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;) fn(static_cast<int>(slot), item);
  });
}

}  // namespace epona
