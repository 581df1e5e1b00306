#pragma once
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/activation.h"

namespace epona {

/// A constant B[k, n] of 2, 4 or 8 bits as MatMulNBits has it: for each column, blocks of `block` values along k, each
/// with a scale and maybe a zero point; value = (q - zero) * scale. `quants` is [n][blocks][block * bits / 8], low bits
/// first; `zeros` is [n][ceil(blocks * bits / 8)] packed the same way, null for 2^(bits - 1).
struct NBitsWeights {
  int64_t n = 0, k = 0;
  int bits = 4;
  int64_t block = 32;
  const uint8_t* quants = nullptr;
  const float* scales = nullptr;  ///< [n][blocks]
  const uint8_t* zeros = nullptr;
  const float* float_zeros = nullptr;  ///< [n][blocks], zero points that are not integers; instead of `zeros`
};

/// How the products are computed.
enum class NBitsMode : uint8_t {
  f32,   ///< weights widened to fp32: exact up to rounding
  int8,  ///< A rounded to 8 bits in each block (ONNX Runtime's accuracy level 4)
};

/// The mode that is available for these weights: int8 asks for 4 or 8 bits, blocks of at least 16 (a multiple of 16)
/// and integer zero points.
bool nbits_int8_supported(const NBitsWeights& w);

size_t packed_nbits_bytes(const NBitsWeights& w, NBitsMode mode);
/// `out` must be 64-byte aligned.
void pack_nbits(const NBitsWeights& w, NBitsMode mode, void* out, ThreadPool* pool = nullptr);

/// C[m, n] = activation(A[m, k] * B + bias) + residual.
struct NBitsGemm {
  int64_t m = 0, n = 0, k = 0;
  int bits = 4;
  int64_t block = 32;
  NBitsMode mode = NBitsMode::f32;
  const float* a = nullptr;
  int64_t lda = 0;
  const void* b = nullptr;  ///< what pack_nbits() wrote for the same mode
  float* c = nullptr;
  int64_t ldc = 0;
  const float* bias = nullptr;  ///< per column
  Activation activation;
  const float* residual = nullptr;
  int64_t residual_ld = 0;
};

size_t gemm_nbits_workspace(const NBitsGemm& g, int threads);
void gemm_nbits(const NBitsGemm& g, void* workspace, ThreadPool& pool);

}  // namespace epona
