#pragma once
#include <type_traits>

#include "kernels/gemm.h"
#include "ops/nn/rows.h"

namespace epona {

/// y = x * B for a matrix B of k rows and n columns that is used many times.
template <class T>
struct Product {
  int64_t k = 0, n = 0;
  const T* b = nullptr;  ///< float: as pack_b() wrote it; double: {n, k}

  void run(const T* x, int64_t rows, T* y, const T* bias, ThreadPool& pool) const {
    if constexpr (std::is_same_v<T, float>) {
      Gemm g;
      g.m = rows, g.n = n, g.k = k;
      g.a = x, g.lda = k;
      g.b = b, g.b_packed = true;
      g.c = y, g.ldc = n;
      g.epilogue.bias = bias;
      gemm(g, nullptr, pool);
    } else {
      pool.parallel_for(rows * n, 0.5 * static_cast<double>(k), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          y[i] = row_dot(x + i / n * k, b + i % n * k, k) + (bias ? bias[i % n] : T(0));
      });
    }
  }
};

}  // namespace epona
