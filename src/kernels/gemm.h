#pragma once
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/activation.h"

namespace epona {

/// What is done to the sum before it is stored:
///   y = activation(alpha * sum + bias_scale * bias + residual), or with residual_last
///   y = activation(alpha * sum + bias_scale * bias) + residual.
struct GemmEpilogue {
  float alpha = 1;
  float bias_scale = 1;
  /// bias[r * bias_row_stride + c * bias_col_stride]; the column stride is 0 or 1. A bias per column has strides 0, 1.
  const float* bias = nullptr;
  int64_t bias_row_stride = 0;
  int64_t bias_col_stride = 1;
  /// residual[r * residual_ld + c]; it may be C itself.
  const float* residual = nullptr;
  int64_t residual_ld = 0;
  bool residual_last = false;
  Activation activation;
};

/// C[m, n] = epilogue(op(A)[m, k] * op(B)[k, n]), all row-major; a batch of them when batch > 1.
struct Gemm {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  int64_t lda = 0;
  bool trans_a = false;  ///< a holds [k, m]
  /// Either plain B with ldb, or B as pack_b() wrote it (ldb and trans_b are then of no concern).
  const float* b = nullptr;
  int64_t ldb = 0;
  bool trans_b = false;  ///< b holds [n, k]
  bool b_packed = false;
  float* c = nullptr;
  int64_t ldc = 0;
  GemmEpilogue epilogue;

  int64_t batch = 1;
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;  ///< elements from one batch entry to the next
  /// Where the batch of A or B is broadcast: offsets in elements, one per batch entry; they replace the stride.
  const int64_t* a_offsets = nullptr;
  const int64_t* b_offsets = nullptr;
  int64_t bias_stride = 0, residual_stride = 0;
};

/// Floats that pack_b() writes for a constant B of k rows and n columns. Depends on the instruction-set tier.
size_t packed_b_floats(int64_t k, int64_t n);

/// Packs B (plain, ldb, maybe transposed) for every later product with it, of any m; prefill and decode share it.
/// `out` must be 64-byte aligned.
void pack_b(int64_t k, int64_t n, const float* b, int64_t ldb, bool trans_b, float* out, ThreadPool* pool = nullptr);

/// Bytes of scratch that gemm() needs on a pool of that many threads. Pointers in `g` do not matter, except that
/// a_offsets/b_offsets are null or not. 0 for packed B and plain A.
size_t gemm_workspace(const Gemm& g, int threads);

/// Sums run over the whole k in fp32. NaN and infinity go through. m, n or batch of 0 do nothing; k of 0 gives the
/// epilogue of 0. `workspace` must be 64-byte aligned.
void gemm(const Gemm& g, void* workspace, ThreadPool& pool);

}  // namespace epona
