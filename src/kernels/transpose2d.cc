#include "kernels/transpose2d.h"

#include <algorithm>
#include <cstring>

namespace epona {
namespace {

// Vectors of 16 bytes by the compilers' own extension: every target has them, and the file is compiled once.
template <class T, int N>
struct Vec {
  typedef T type __attribute__((vector_size(16)));
};

template <int N, class V>
V low(V a, V b) {
  if constexpr (N == 2) return __builtin_shufflevector(a, b, 0, 2);
  if constexpr (N == 4) return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  if constexpr (N == 8) return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  if constexpr (N == 16) return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

template <int N, class V>
V high(V a, V b) {
  if constexpr (N == 2) return __builtin_shufflevector(a, b, 1, 3);
  if constexpr (N == 4) return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  if constexpr (N == 8) return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  if constexpr (N == 16)
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/// Transposes an N x N tile: log2(N) rounds of interleaving row i with row i + N/2.
template <class T>
void tile(const char* in, int64_t in_stride, char* out, int64_t out_stride) {
  constexpr int N = 16 / sizeof(T);
  using V = typename Vec<T, N>::type;
  V a[N], b[N];
  for (int i = 0; i < N; ++i) std::memcpy(&a[i], in + i * in_stride, 16);
  for (int round = 1; round < N; round *= 2) {
    for (int i = 0; i < N / 2; ++i) {
      b[2 * i] = low<N>(a[i], a[i + N / 2]);
      b[2 * i + 1] = high<N>(a[i], a[i + N / 2]);
    }
    std::copy_n(b, N, a);
  }
  for (int i = 0; i < N; ++i) std::memcpy(out + i * out_stride, &a[i], 16);
}

template <class T>
void plain(int64_t rows, int64_t columns, const char* in, int64_t in_stride, char* out, int64_t out_stride) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(out + r * out_stride + c * static_cast<int64_t>(sizeof(T)),
                  in + c * in_stride + r * static_cast<int64_t>(sizeof(T)), sizeof(T));
}

template <class T>
void transpose(int64_t rows, int64_t columns, const char* in, int64_t in_stride, char* out, int64_t out_stride) {
  constexpr int64_t N = 16 / sizeof(T), kBytes = sizeof(T);
  int64_t full_rows = rows / N * N, full_columns = columns / N * N;
  // Columns outermost, in strips of at most 64 bytes of output: a strip's input lines stay in the cache over all rows.
  constexpr int64_t kStrip = 4 * N;
  for (int64_t strip = 0; strip < full_columns; strip += kStrip) {
    int64_t end = std::min(full_columns, strip + kStrip);
    for (int64_t r = 0; r < full_rows; r += N)
      for (int64_t c = strip; c < end; c += N)
        tile<T>(in + c * in_stride + r * kBytes, in_stride, out + r * out_stride + c * kBytes, out_stride);
  }
  plain<T>(full_rows, columns - full_columns, in + full_columns * in_stride, in_stride, out + full_columns * kBytes,
           out_stride);
  plain<T>(rows - full_rows, columns, in + full_rows * kBytes, in_stride, out + full_rows * out_stride, out_stride);
}

struct Wide {
  uint64_t low, high;
};

}  // namespace

void transpose2d(int element_bytes, int64_t rows, int64_t columns, const char* in, int64_t in_stride, char* out,
                 int64_t out_stride) {
  switch (element_bytes) {
    case 1:
      return transpose<uint8_t>(rows, columns, in, in_stride, out, out_stride);
    case 2:
      return transpose<uint16_t>(rows, columns, in, in_stride, out, out_stride);
    case 4:
      return transpose<uint32_t>(rows, columns, in, in_stride, out, out_stride);
    case 8:
      return transpose<uint64_t>(rows, columns, in, in_stride, out, out_stride);
    default:
      return plain<Wide>(rows, columns, in, in_stride, out, out_stride);
  }
}

}  // namespace epona
