#pragma once
// What the driver of the int8 matrix product (gemm_int8.cc) and its SIMD code (gemm_int8_tile.cc) say to each other.
#include <cstddef>
#include <cstdint>

namespace epona::int8_detail {

/// One register tile of sums: rows of A, as pack_a left them, times neighbouring panels of B.
struct Tile {
  int64_t groups;  ///< k / group, rounded up
  const uint8_t* a;
  int64_t lda;  ///< bytes from one row of A to the next
  const int8_t* b;
  int64_t panel_stride;  ///< bytes from one panel to the next
  int32_t* sums;
  int64_t ld;
};

/// The element (k, column of the panel) of B is `value` more than what is packed.
struct Fix {
  int32_t k;
  int16_t column, value;
};

/// Adds to a tile of sums what fixes to a panel that lies `column` columns inside it left out. A is bytes.
inline void add_fixes(const Tile& t, int64_t rows, int64_t column, const Fix* fixes, int64_t count) {
  for (int64_t r = 0; r < rows; ++r) {
    const uint8_t* const a = t.a + r * t.lda;
    int32_t* const sums = t.sums + r * t.ld + column;
    for (int64_t i = 0; i < count; ++i) sums[fixes[i].column] += a[fixes[i].k] * fixes[i].value;
  }
}

/// The epilogue of a block of sums.
struct Finish {
  const int32_t* sums;
  int64_t ld;
  int64_t rows, cols;
  const int32_t* add;     ///< per column, null: 0
  const int32_t* a_zero;  ///< per row with `a_zero_cols` per column: subtracts their product; null: no such term
  const int32_t* a_zero_cols;
  const int32_t* row_sums;  ///< per row with `b_zero` per column: likewise
  const int32_t* b_zero;
  int output;  ///< Int8Output
  void* c;
  int64_t ldc;
  const float* scale;  ///< per column when scale_stride is 1
  int64_t scale_stride;
  float a_scale;
  const float* a_scales;  ///< per row for f32; null: a_scale
  const float* bias;
  const float* residual;
  int64_t residual_ld;
  int32_t c_zero, low, high;
};

/// Rows of A times one panel, with the epilogue, for outputs of bytes and floats. s = sums + add - row_sums * b_zero:
///   bytes:  c = clamp(round_half_even(s * scale * a_scale) + c_zero, low, high)
///   floats: c = s * scale * a_scale + bias
struct PanelRows {
  int64_t groups;
  const uint8_t* a;
  int64_t lda;
  int64_t rows;
  const int8_t* b;
  const Fix* fixes = nullptr;  ///< of pair_kernels(): to this panel
  int64_t fix_count = 0;
  int64_t cols;           ///< that are written; `add` and `b_zero` are as long as the panel is wide
  const int32_t* add;     ///< per column
  const int32_t* b_zero;  ///< per column; null: 0
  const int32_t* row_sums;
  int output;  ///< Int8Output, not s32
  void* c;
  int64_t ldc;
  const float* scale;  ///< per column
  float a_scale;
  const float* bias;  ///< per column, may be null
  int32_t c_zero, low, high;
};

constexpr int kMaxRows = 12;
constexpr int kMaxWidth = 32;

struct Kernels {
  int rows;
  int lanes;     ///< int32 in a vector; a panel is two vectors wide, the last one may be one
  int group;     ///< values of k that lie side by side in a packed panel
  int a_bytes;   ///< of one value of packed A: 1 (unsigned) or 2 (signed)
  int a_offset;  ///< what pack_a adds to signed A
  void (*tile[kMaxRows + 1][2][3])(const Tile&);  ///< [rows][vectors per panel - 1][log2(panels)]
  /// [rows]: both sides of 16 bits, two vectors wide; none where `group` is 4.
  void (*wide_tile[kMaxRows + 1])(const Tile&);
  void (*panel[2])(const PanelRows&);  ///< [vectors per panel - 1]
  /// Packs rows of A (k values each, padded with zeros to whole groups) and sums them up.
  void (*pack_a)(int64_t rows, int64_t k, const uint8_t* a, int64_t lda, bool is_signed, uint8_t* out, int64_t out_ld,
                 int32_t* row_sums);
  /// One panel; unsigned B becomes signed by subtracting 128. Sums of the columns as packed.
  void (*pack_b)(int64_t k, int64_t columns, int64_t width, const uint8_t* b, int64_t ldb, bool trans, bool is_signed,
                 int8_t* out, int32_t* column_sums);
  void (*finish)(const Finish&);
  /// pair_kernels() only: makes a packed panel safe for sums of two products in 16 bits. Returns how many fixes it wrote,
  /// or -1 when more than `most` would be needed.
  int (*split_pairs)(int64_t k, int64_t width, int8_t* panel, Fix* fixes, int most);
  double ops_per_ns;
};

/// For any B.
const Kernels& kernels();
/// A faster set for B that split_pairs() has taken; null on tiers that need none.
const Kernels* pair_kernels();

}  // namespace epona::int8_detail
