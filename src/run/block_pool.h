#pragma once
#include <cstddef>
#include <mutex>
#include <vector>

#include "base/device.h"

namespace epona {

/// A piece of memory for the values of one running segment.
struct Block {
  void* memory = nullptr;
  size_t bytes = 0;
};

/// Memory blocks that runs take and give back: concurrent runs need one each, whatever number of shapes they have seen.
class BlockPool {
 public:
  /// In a device's memory, or the host's.
  explicit BlockPool(Device* device = nullptr) : device_(device) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// A block of at least `bytes`, preferably the one at `preferred` (then no address changes).
  Block take(size_t bytes, const void* preferred);
  void give(Block block);

 private:
  Block make(size_t bytes) const;
  void destroy(Block block) const;

  Device* device_;
  std::mutex mutex_;
  std::vector<Block> idle_;
};

}  // namespace epona
