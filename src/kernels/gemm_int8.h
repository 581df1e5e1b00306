#pragma once
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/activation.h"

namespace epona {

enum class Int8Output : uint8_t { s32, f32, u8, s8 };

/// C[m, n] from sums s = sum over k of (A - a_zero) (B - b_zero), computed exactly in 32 bits (wrapping), A and B of 8
/// bits, signed or not, row-major:
///   s32:   c = s + bias_s32
///   f32:   c = activation((s + bias_s32) * scale + bias) + residual
///   u8,s8: c = clamp(round_half_even((s + bias_s32) * scale) + c_zero, low, high)
struct Int8Gemm {
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  int64_t lda = 0;
  bool a_signed = false;
  /// As pack_b_int8() wrote it, or plain with ldb.
  const void* b = nullptr;
  bool b_packed = true;
  int64_t ldb = 0;
  bool trans_b = false;   ///< plain B holds [n, k]
  bool b_signed = false;  ///< of the B that was packed as well

  /// Zero points; a null pointer is 0. The stride is 0 (one for all) or 1: one per row of A, one per column of B. Of
  /// the type of A and B.
  const void* a_zero = nullptr;
  int64_t a_zero_stride = 0;
  const void* b_zero = nullptr;
  int64_t b_zero_stride = 0;

  Int8Output output = Int8Output::s32;
  void* c = nullptr;
  int64_t ldc = 0;
  const int32_t* bias_s32 = nullptr;  ///< per column
  /// scale[column * scale_stride], times a_scale.
  const float* scale = nullptr;
  int64_t scale_stride = 0;
  float a_scale = 1;
  const float* a_scales = nullptr;  ///< f32: one per row of A instead
  const float* bias = nullptr;      ///< per column
  Activation activation;
  const float* residual = nullptr;  ///< may be C
  int64_t residual_ld = 0;
  int32_t c_zero = 0;
  int32_t low = 0, high = 255;  ///< bounds of a quantised output; a fused clamp narrows them
};

/// Bytes that pack_b_int8() writes. Depends on the instruction-set tier.
size_t packed_b_int8_bytes(int64_t k, int64_t n);

/// Packs B for every later product with it; column sums are kept with it. `out` must be 64-byte aligned.
void pack_b_int8(int64_t k, int64_t n, const void* b, int64_t ldb, bool trans_b, bool b_signed, void* out,
                 ThreadPool* pool = nullptr);

/// Bytes of scratch that gemm_int8() needs: A in the form that the kernel reads, and B when it is plain.
size_t gemm_int8_workspace(int64_t m, int64_t n, int64_t k, bool b_packed);

/// `workspace` must be 64-byte aligned. m or n of 0 do nothing.
void gemm_int8(const Int8Gemm& g, void* workspace, ThreadPool& pool);

}  // namespace epona
