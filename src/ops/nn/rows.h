#pragma once
#include <cstdint>

namespace epona {

/// Sums over a contiguous row. Eight partial sums: the compiler keeps them in vectors, and rounding errors stay small.
template <class T, class Fn>
T row_reduce(int64_t n, Fn&& term) {
  constexpr int kLanes = 8;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) lanes[j] += term(i + j);
  T sum = 0;
  for (; i < n; ++i) sum += term(i);
  for (int j = 0; j < kLanes; ++j) sum += lanes[j];
  return sum;
}

template <class T>
T row_sum(const T* x, int64_t n) {
  return row_reduce<T>(n, [x](int64_t i) { return x[i]; });
}

/// Sum of (x - shift)^2.
template <class T>
T row_square_sum(const T* x, T shift, int64_t n) {
  return row_reduce<T>(n, [x, shift](int64_t i) { return (x[i] - shift) * (x[i] - shift); });
}

template <class T>
T row_dot(const T* a, const T* b, int64_t n) {
  return row_reduce<T>(n, [a, b](int64_t i) { return a[i] * b[i]; });
}

}  // namespace epona
