#pragma once
#include <cstddef>
#include <mutex>
#include <vector>

namespace epona {

/// A piece of memory for the values of one running segment.
struct Block {
  void* memory = nullptr;
  size_t bytes = 0;
};

/// Memory blocks that runs take and give back: concurrent runs need one each, whatever number of shapes they have seen.
class BlockPool {
 public:
  BlockPool() = default;
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// A block of at least `bytes`, preferably the one at `preferred` (then no address changes).
  Block take(size_t bytes, const void* preferred);
  void give(Block block);

 private:
  std::mutex mutex_;
  std::vector<Block> idle_;
};

}  // namespace epona
