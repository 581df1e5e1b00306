#pragma once
#include <cstdint>

namespace epona {

/// Turns the first 2 * half elements of a head by the angles of its position: pairs are (i, i + half), or neighbours
/// when interleaved. The rest is copied. x may be y.
template <class T>
void rotate_head(const T* x, T* y, int64_t head_size, const T* cos, const T* sin, int64_t half, bool interleaved) {
  for (int64_t i = 0; i < half; ++i) {
    const int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + half;
    const T real = x[a], imaginary = x[b];
    y[a] = cos[i] * real - sin[i] * imaginary;
    y[b] = sin[i] * real + cos[i] * imaginary;
  }
  if (x != y)
    for (int64_t i = 2 * half; i < head_size; ++i) y[i] = x[i];
}

}  // namespace epona
