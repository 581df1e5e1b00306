#pragma once
#include <cstring>

#include "graph/tensor.h"

namespace epona {

/// The tensor, or a copy of it when its elements lie across their alignment: large constants lie in the model's file at
/// any address, and portable code reads whole elements.
inline Tensor aligned(const Tensor& tensor) {
  constexpr uintptr_t kWidest = 8;
  if (reinterpret_cast<uintptr_t>(tensor.data) % kWidest == 0) return tensor;
  Tensor copy = Tensor::allocate(tensor.type, tensor.shape);
  std::memcpy(copy.data, tensor.data, tensor.bytes());
  return copy;
}

}  // namespace epona
