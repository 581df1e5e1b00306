// Transposition of 4-byte elements in registers. Include inside a foreach_target file.
#if defined(EPONA_KERNELS_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EPONA_KERNELS_TRANSPOSE_INL_H_
#undef EPONA_KERNELS_TRANSPOSE_INL_H_
#else
#define EPONA_KERNELS_TRANSPOSE_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// out[j][i] = in[i][j] for a square of as many 4-byte elements as a vector of at most 256 bits holds.
using SquareTag = hn::CappedTag<uint32_t, 8>;
constexpr int64_t kSquare = static_cast<int64_t>(hn::MaxLanes(SquareTag()));

HWY_INLINE void transpose_square(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride) {
  const SquareTag d;
  const hn::Repartition<uint64_t, SquareTag> d64;
  hn::Vec<SquareTag> r[kSquare], t[kSquare];
  for (int i = 0; i < kSquare; ++i) r[i] = hn::LoadU(d, in + i * in_stride);
  // Within each 128-bit block: 4x4 squares.
  for (int i = 0; i < kSquare; i += 2) {
    t[i] = hn::InterleaveLower(d, r[i], r[i + 1]);
    t[i + 1] = hn::InterleaveUpper(d, r[i], r[i + 1]);
  }
  for (int i = 0; i < kSquare; i += 4) {
    for (int k = 0; k < 2; ++k) {
      const auto a = hn::BitCast(d64, t[i + k]), b = hn::BitCast(d64, t[i + 2 + k]);
      r[i + 2 * k] = hn::BitCast(d, hn::InterleaveLower(d64, a, b));
      r[i + 2 * k + 1] = hn::BitCast(d, hn::InterleaveUpper(d64, a, b));
    }
  }
  if constexpr (kSquare == 8) {
    for (int i = 0; i < 4; ++i) {
      t[i] = hn::ConcatLowerLower(d, r[i + 4], r[i]);
      t[i + 4] = hn::ConcatUpperUpper(d, r[i + 4], r[i]);
    }
    for (int i = 0; i < kSquare; ++i) hn::StoreU(t[i], d, out + i * out_stride);
  } else {
    for (int i = 0; i < kSquare; ++i) hn::StoreU(r[i], d, out + i * out_stride);
  }
}

/// Runs that plan_copy() made one element need not lie on the element's natural alignment.
HWY_INLINE void copy_word(const uint32_t* from, uint32_t* to) { std::memcpy(to, from, sizeof(uint32_t)); }

/// out[j * out_stride + i] = in[i * in_stride + j], i < rows, j < cols, 4-byte elements.
inline void transpose_words(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride, int64_t rows,
                            int64_t cols) {
  int64_t i = 0;
  for (; i + kSquare <= rows; i += kSquare) {
    int64_t j = 0;
    for (; j + kSquare <= cols; j += kSquare)
      transpose_square(in + i * in_stride + j, in_stride, out + j * out_stride + i, out_stride);
    for (; j < cols; ++j)
      for (int64_t k = i; k < i + kSquare; ++k) copy_word(in + k * in_stride + j, out + j * out_stride + k);
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) copy_word(in + i * in_stride + j, out + j * out_stride + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#endif  // include guard
