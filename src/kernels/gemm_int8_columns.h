#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/gemm_int8.h"

namespace epona {

/// C[m, n] = sum over k of (A - a_zero) (B - b_zero) for one A, packed ahead, and many B of a few columns, each used
/// once: a convolution in plain layout, whose columns are gathered a block at a time. Runs on the calling thread.
///   s32: c = s + add[row]
///   f32: c = (s + add[row]) * scale
struct Int8Columns {
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;  ///< as pack_a_int8() wrote it
  bool a_signed = false;
  const void* a_zero = nullptr;  ///< null: 0; one (stride 0) or one for each row
  int64_t a_zero_stride = 0;
  const void* b = nullptr;  ///< row-major {k, n}
  bool b_signed = false;
  int32_t b_zero = 0;

  Int8Output output = Int8Output::s32;  ///< or f32
  void* c = nullptr;
  int64_t ldc = 0;
  const int32_t* add = nullptr;  ///< may be null
  float scale = 1;
};

size_t packed_a_int8_bytes(int64_t m, int64_t k);
/// `out` must be 64-byte aligned.
void pack_a_int8(int64_t m, int64_t k, const void* a, int64_t lda, bool a_signed, void* out, ThreadPool& pool);

/// Bytes of scratch that gemm_int8_columns() needs.
size_t int8_columns_workspace(int64_t m, int64_t n, int64_t k);
/// Columns that make a good block.
int64_t int8_columns_block(int64_t k);

void gemm_int8_columns(const Int8Columns& g, void* workspace);

}  // namespace epona
