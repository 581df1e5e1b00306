#include "graph/output_pool.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace epona {
namespace {

// Below, malloc keeps what it was given back (its own limit for that is 128 KB at the start).
constexpr size_t kSmallest = 64 * 1024;
constexpr size_t kMostIdle = size_t{64} << 20;

}  // namespace

OutputPool::~OutputPool() { trim(0); }

Tensor OutputPool::make(DataType type, const Shape& shape) {
  if (type == DataType::string) return Tensor::allocate(type, shape);
  size_t bytes = type_bytes(type, shape.size());
  if (bytes < kSmallest || bytes > kMostIdle) return Tensor::allocate(type, shape);
  // 64 bytes more: vector loads of the last elements may run over.
  bytes = (bytes + 63) / 64 * 64 + 64;
  Tensor tensor;
  tensor.type = type;
  tensor.shape = shape;
  tensor.data = take(bytes);
  if (!tensor.data) return Tensor::allocate(type, shape);  // which says so
  tensor.owner = std::shared_ptr<void>(
      tensor.data, [pool = shared_from_this(), bytes](void* memory) { pool->give({memory, bytes}); });
  return tensor;
}

void* OutputPool::take(size_t bytes) {
  std::lock_guard lock(mutex_);
  for (size_t at = count_; at-- > 0;) {
    if (idle_[at].bytes != bytes) continue;
    used_ += bytes;
    return remove(at).memory;
  }
  size_t most = std::max(most_used_, used_ + bytes);
  trim(most - used_ - bytes);
  void* memory = std::aligned_alloc(64, bytes);
  if (!memory) return nullptr;
  used_ += bytes;
  most_used_ = most;
  return memory;
}

void OutputPool::give(Block block) {
  std::lock_guard lock(mutex_);
  used_ -= block.bytes;
  if (count_ == idle_.size()) std::free(remove(0).memory);
  idle_[count_++] = block;
  idle_bytes_ += block.bytes;
  trim(std::min(kMostIdle, most_used_ - used_));
}

OutputPool::Block OutputPool::remove(size_t at) {
  Block block = idle_[at];
  std::copy(idle_.begin() + at + 1, idle_.begin() + count_, idle_.begin() + at);
  --count_;
  idle_bytes_ -= block.bytes;
  return block;
}

void OutputPool::trim(size_t most) {
  while (idle_bytes_ > most) std::free(remove(0).memory);
}

}  // namespace epona
