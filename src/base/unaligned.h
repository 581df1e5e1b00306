#pragma once
#include <cstring>

namespace epona {

/// *p for an address that need not be a multiple of T's alignment: weights are read where they lie in the model's file.
template <class T>
T load_unaligned(const T* p) {
  T value;
  std::memcpy(&value, static_cast<const void*>(p), sizeof value);
  return value;
}

}  // namespace epona
