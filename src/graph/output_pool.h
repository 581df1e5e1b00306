#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <mutex>

#include "graph/tensor.h"

namespace epona {

/// Host memory for the outputs of one model. What callers give back is kept for later runs: the system would take large
/// blocks away and hand out others page by page, which costs more than many kernels. Held back is never more than callers
/// had at once, nor more than 64 MB. The memory may outlive the model.
class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  OutputPool() = default;
  OutputPool(const OutputPool&) = delete;
  OutputPool& operator=(const OutputPool&) = delete;
  ~OutputPool();

  Tensor make(DataType type, const Shape& shape);
  size_t idle_bytes() const { return idle_bytes_; }  ///< while nobody else uses the pool

 private:
  struct Block {
    void* memory;
    size_t bytes;
  };
  void* take(size_t bytes);
  void give(Block block);
  Block remove(size_t at);
  void trim(size_t most);

  std::mutex mutex_;
  std::array<Block, 64> idle_;  // given back last comes last
  size_t count_ = 0, idle_bytes_ = 0, used_ = 0, most_used_ = 0;
};

}  // namespace epona
