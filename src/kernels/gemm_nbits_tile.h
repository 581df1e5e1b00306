#pragma once
// What the driver of the n-bit matrix product (gemm_nbits.cc) and its SIMD code (gemm_nbits_int8.cc) say to each other.
//
// A packed panel, two vectors of columns, is a run of blocks. Each holds the values of all its columns, then their
// scales (float), then, where there are any, their zero points. Values lie in int32 lanes, one lane a column:
//   int8 mode, 4 bits: a lane is k..k+3 in the low halves of its bytes and k+4..k+7 in the high ones
//   int8 mode, 8 bits: `group` values of k side by side
//   f32 mode, 4 bits:  a lane is k..k+7 from the low bits up; 2 bits: k..k+15; 8 bits: k..k+3
#include <cstddef>
#include <cstdint>

namespace epona::nbits_detail {

/// Rows of A, rounded to 8 bits a block at a time.
struct RoundedA {
  const uint8_t* values;  ///< int8, or int16 where `wide`
  int64_t ld;             ///< bytes
  const float* scales;    ///< [row][block]
  const int32_t* sums;    ///< of the values, [row][block]
};

struct Tile {
  int64_t blocks, block;
  int64_t block_bytes;  ///< of one block of one panel
  bool zeros;           ///< there are zero points
  RoundedA a;           ///< int8 mode
  const float* a_f32;   ///< f32 mode: one row
  const float* a_sums;  ///< f32 mode: sums of A over each block
  const uint8_t* b;
  int64_t panel_stride;
  float* sums;
  int64_t ld;
};

using TileFn = void (*)(const Tile&);
constexpr int kMaxRows = 8;
constexpr int kMaxWidth = 32;

struct Kernels {
  int rows;  ///< rows of a full tile in int8 mode
  int lanes;
  int group;                     ///< see above
  bool wide;                     ///< 8-bit weights take A as int16
  TileFn int8[2][kMaxRows + 1];  ///< [bits == 8][rows]
  TileFn int8_streams[2];        ///< one row, four panels
  TileFn f32;                    ///< one row, 4 bits
  void (*round_a)(int64_t k, int64_t block, const float* a, bool wide, uint8_t* values, float* scales, int32_t* sums);
  /// A panel of f32-mode weights as fp32 [blocks * block][width].
  void (*widen)(int bits, bool zeros, int64_t blocks, int64_t block, int64_t width, const uint8_t* panel, float* out);
};

const Kernels& kernels();

}  // namespace epona::nbits_detail
