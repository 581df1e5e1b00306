#pragma once
// What the driver of the float matrix product (gemm.cc) and its SIMD code (gemm_tile.cc) say to each other.
#include <cstddef>
#include <cstdint>

namespace epona::gemm_detail {

/// One register tile: mr rows of A times `panels` neighbouring panels of B, over k.
struct Tile {
  int64_t k;
  const float* a;
  int64_t lda;
  const float* b;
  int64_t ldb;           ///< floats from one k to the next: the panel's width when packed
  int64_t panel_stride;  ///< floats from one panel to the next
  float* c;
  int64_t ldc;
  const float* start;  ///< what the sums start from, laid out as C; null: zero
  int64_t start_ld;
  const float*
      prefetch;  ///< fetched on the way, one line at each k, prefetch_step floats further each time; never null
  int64_t prefetch_step;
  // The epilogue that stays in registers: y = clamp(sum + bias[column] + residual).
  const float* bias;
  const float* residual;
  int64_t residual_ld;
  float low, high;
  bool clamp;
};

/// c = alpha * sums + bias_scale * bias + residual for a block of rows and columns; c may be sums.
struct Finish {
  const float* sums;
  int64_t sums_ld;
  float* c;
  int64_t ldc;
  int64_t rows, cols;
  float alpha = 1;
  float bias_scale = 1;
  const float* bias = nullptr;
  int64_t bias_row_stride = 0;
  int64_t bias_col_stride = 0;
  const float* residual = nullptr;
  int64_t residual_ld = 0;
};

constexpr int kMaxRows = 14;   // rows of the tallest tile
constexpr int kMaxPanels = 4;  // panels read at once when there are few rows
constexpr int kMaxWidth = 32;  // columns of the widest panel

struct Kernels {
  int rows;   ///< rows of a full tile
  int lanes;  ///< floats in a vector; a panel is two vectors wide, the last one may be one
  /// tile[rows][vectors per panel - 1][log2(panels)]; null where that shape does not fit the registers
  void (*tile[kMaxRows + 1][2][3])(const Tile&);
  void (*finish)(const Finish&);
  void (*pack)(int64_t k, int64_t columns, int64_t width, const float* b, int64_t ldb, bool trans, float* out);
  void (*transpose)(int64_t rows, int64_t cols, const float* in, int64_t ld, float* out, int64_t out_ld);
  double flops_per_ns;  ///< about what one thread does, for splitting work
};

const Kernels& kernels();

}  // namespace epona::gemm_detail
