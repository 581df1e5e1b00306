#include "kernels/gemm_int8_columns.h"

#include <algorithm>

#include "kernels/gemm_grid.h"
#include "kernels/gemm_int8_tile.h"

namespace epona {
namespace {

using namespace int8_detail;
using gemm_detail::ceil_div;
using gemm_detail::Panels;
using gemm_detail::round_up;

int32_t byte_at(const void* values, int64_t i, bool is_signed) {
  return is_signed ? static_cast<const int8_t*>(values)[i] : static_cast<const uint8_t*>(values)[i];
}

int64_t padded(const Kernels& table, int64_t k) { return round_up(k, table.group); }
int64_t row_bytes(const Kernels& table, int64_t k) { return padded(table, k) * table.a_bytes; }
/// The row sums lie behind the rows.
int64_t row_sums_at(const Kernels& table, int64_t m, int64_t k) { return round_up(m * row_bytes(table, k), 64); }

/// Scratch: packed B, terms per column and per row.
struct Scratch {
  int64_t column_sums, ones, row_terms, a_zeros, bytes;
  Scratch(const Kernels& table, int64_t m, int64_t n, int64_t k) {
    const int64_t columns = Panels(table.lanes, n).columns(), row = round_up(m * 4, 64);
    column_sums = round_up(padded(table, k) * columns, 64);
    ones = column_sums + round_up(columns * 4, 64);
    row_terms = ones + round_up(columns * 4, 64);
    a_zeros = row_terms + row;
    bytes = a_zeros + row;
  }
};

}  // namespace

size_t packed_a_int8_bytes(int64_t m, int64_t k) { return static_cast<size_t>(row_sums_at(kernels(), m, k) + m * 4); }

void pack_a_int8(int64_t m, int64_t k, const void* a, int64_t lda, bool a_signed, void* out, ThreadPool& pool) {
  const Kernels& table = kernels();
  const int64_t ld = row_bytes(table, k);
  auto* const to = static_cast<uint8_t*>(out);
  auto* const sums = reinterpret_cast<int32_t*>(to + row_sums_at(table, m, k));
  pool.parallel_for(m, static_cast<double>(k) * 0.1 + 10, [&](int64_t begin, int64_t end) {
    table.pack_a(end - begin, k, static_cast<const uint8_t*>(a) + begin * lda, lda, a_signed, to + begin * ld, ld,
                 sums + begin);
  });
}

size_t int8_columns_workspace(int64_t m, int64_t n, int64_t k) {
  return static_cast<size_t>(Scratch(kernels(), m, n, k).bytes);
}

int64_t int8_columns_block(int64_t k) {
  constexpr int64_t kBytes = 192 * 1024;  // stays in a small L2 while the rows pass
  const int64_t width = 2 * kernels().lanes;
  return std::clamp<int64_t>(kBytes / std::max<int64_t>(1, k) / width, 4, 64) * width;
}

void gemm_int8_columns(const Int8Columns& g, void* workspace) {
  if (g.m <= 0 || g.n <= 0) return;
  const Kernels& table = kernels();
  const Panels panels(table.lanes, g.n);
  const Scratch at(table, g.m, g.n, g.k);
  auto* const base = static_cast<uint8_t*>(workspace);
  auto* const b = reinterpret_cast<int8_t*>(base);
  auto* const column_sums = reinterpret_cast<int32_t*>(base + at.column_sums);
  auto* const ones = reinterpret_cast<int32_t*>(base + at.ones);
  auto* const row_terms = reinterpret_cast<int32_t*>(base + at.row_terms);
  auto* const a_zeros = reinterpret_cast<int32_t*>(base + at.a_zeros);
  const int64_t panel_bytes = padded(table, g.k) * panels.width;
  for (int64_t p = 0; p < panels.count(); ++p) {
    const bool tail = p == panels.whole;
    table.pack_b(g.k, tail ? panels.tail_columns : panels.width, tail ? panels.tail_width : panels.width,
                 static_cast<const uint8_t*>(g.b) + p * panels.width, g.n, false, g.b_signed, b + p * panel_bytes,
                 column_sums + p * panels.width);
  }
  // s = sums - row_terms - a_zeros * column terms, in the arithmetic of the packed values (see zero_terms() of
  // gemm_int8.cc); sums wrap around, so products are taken without a sign.
  const auto b_zero = static_cast<uint32_t>(g.b_zero - (g.b_signed ? 0 : 128));
  for (int64_t c = 0; c < panels.columns(); ++c) {
    column_sums[c] = static_cast<int32_t>(static_cast<uint32_t>(column_sums[c]) - static_cast<uint32_t>(g.k) * b_zero);
    ones[c] = 1;
  }
  const auto* a = static_cast<const uint8_t*>(g.a);
  const auto* row_sums = reinterpret_cast<const int32_t*>(a + row_sums_at(table, g.m, g.k));
  const int32_t a_offset = g.a_signed ? table.a_offset : 0;
  for (int64_t r = 0; r < g.m; ++r) {
    a_zeros[r] = a_offset + (g.a_zero ? byte_at(g.a_zero, r * g.a_zero_stride, g.a_signed) : 0);
    row_terms[r] =
        static_cast<int32_t>(static_cast<uint32_t>(row_sums[r]) * b_zero - static_cast<uint32_t>(g.add ? g.add[r] : 0));
  }

  const float one = 1;
  alignas(64) int32_t sums[kMaxRows * kMaxWidth];
  const int64_t tiles = ceil_div(g.m, table.rows), lda = row_bytes(table, g.k);
  for (int64_t i = 0, row = 0, end; i < tiles; ++i, row = end) {
    end = g.m * (i + 1) / tiles;
    for (int64_t p = 0; p < panels.count(); ++p) {
      const bool tail = p == panels.whole;
      const int64_t width = tail ? panels.tail_width : panels.width, column = p * panels.width;
      Tile t{ceil_div(g.k, table.group), a + row * lda, lda, b + p * panel_bytes, panel_bytes, sums, width};
      table.tile[end - row][width / table.lanes - 1][0](t);
      Finish f{};
      f.sums = sums, f.ld = width;
      f.rows = end - row, f.cols = tail ? panels.tail_columns : width;
      f.a_zero = a_zeros + row, f.a_zero_cols = column_sums + column;
      f.row_sums = row_terms + row, f.b_zero = ones + column;
      f.output = static_cast<int>(g.output);
      f.c = static_cast<int32_t*>(g.c) + row * g.ldc + column;  // floats are as long
      f.ldc = g.ldc;
      f.scale = &one, f.a_scale = g.scale;
      table.finish(f);
    }
  }
}

}  // namespace epona
