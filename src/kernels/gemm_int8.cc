#include "kernels/gemm_int8.h"

#include <algorithm>
#include <atomic>

#include "kernels/gemm_grid.h"
#include "kernels/gemm_int8_tile.h"

namespace epona {
namespace {

using namespace int8_detail;
using gemm_detail::ceil_div;
using gemm_detail::Panels;
using gemm_detail::round_up;

int64_t padded_k(const Kernels& kernels, int64_t k) { return round_up(k, kernels.group); }
int64_t a_row_bytes(const Kernels& kernels, int64_t k) { return padded_k(kernels, k) * kernels.a_bytes; }

/// The largest of both sets of kernels.
template <class F>
int64_t largest(F&& size) {
  const Kernels* pairs = pair_kernels();
  return std::max(size(kernels()), pairs ? size(*pairs) : 0);
}

/// Packed B: the panels, the column sums, and for pair_kernels() the number of fixes of each panel and the fixes. Whether
/// it is for those stands in front of the numbers.
struct PackedLayout {
  int64_t sums, counts, fixes, bytes;
  int most;  ///< fixes a panel

  PackedLayout(const Panels& panels, int64_t k) {
    sums = round_up(largest([&](const Kernels& table) { return padded_k(table, k); }) * panels.columns(), 64);
    counts = round_up(sums + panels.columns() * 4, 64);
    // A product of 1 row with k * width / 256 fixes takes about a tenth longer for them.
    most = static_cast<int>(std::min<int64_t>(k * panels.width / 256, 1 << 20));
    const bool pairs = pair_kernels() != nullptr;
    fixes = pairs ? round_up(counts + 4 + panels.count() * 4, 64) : counts + 64;
    bytes = fixes + (pairs ? panels.count() * most * static_cast<int64_t>(sizeof(Fix)) : 0);
  }
};

int32_t zero_at(const void* zeros, int64_t i, bool is_signed) {
  if (!zeros) return 0;
  return is_signed ? static_cast<const int8_t*>(zeros)[i] : static_cast<const uint8_t*>(zeros)[i];
}

constexpr int64_t kFewRows = 4;

/// Scratch: packed A, its row sums, terms per row and column, maybe packed B.
struct Scratch {
  int64_t a, row_sums, a_zero, add, a_zero_cols, b_zero, b, bytes;

  Scratch(const Kernels& kernels, int64_t m, int64_t n, int64_t k, bool b_packed) {
    const int64_t columns = Panels(kernels.lanes, n).columns();
    int64_t at = 0;
    const auto take = [&](int64_t size) {
      const int64_t here = at;
      at += round_up(size, 64);
      return here;
    };
    a = take(m * largest([&](const Kernels& table) { return a_row_bytes(table, k); }));
    row_sums = take(m * 4);
    a_zero = take(m * 4);
    add = take(columns * 4);
    a_zero_cols = take(columns * 4);
    b_zero = take(columns * 4);
    b = take(b_packed ? 0 : static_cast<int64_t>(packed_b_int8_bytes(k, n)));
    bytes = at;
  }
};

struct Product {
  const Kernels* kernels;
  const Int8Gemm* g;
  Panels panels;
  int64_t groups, panel_bytes, lda = 0;
  const uint8_t* a = nullptr;
  const int8_t* b = nullptr;
  const int32_t* fix_counts = nullptr;  // null: no fixes
  const Fix* fixes = nullptr;
  int most_fixes = 0;
  // s = sums + add - a_zero * a_zero_cols - row_sums * b_zero; null terms are 0
  const int32_t *row_sums = nullptr, *a_zero = nullptr, *add = nullptr, *a_zero_cols = nullptr, *b_zero = nullptr;
};

void run_tile(const Product& p, int64_t row, int rows, int64_t panel, int log2_panels) {
  const Int8Gemm& g = *p.g;
  const bool tail = panel == p.panels.whole;
  const int64_t column = panel * p.panels.width;
  const int64_t width = tail ? p.panels.tail_width : p.panels.width;
  alignas(64) int32_t sums[kMaxRows * kMaxWidth];
  Tile t{p.groups, p.a + row * p.lda, p.lda, p.b + panel * p.panel_bytes, p.panel_bytes, sums, width << log2_panels};
  p.kernels->tile[rows][width / p.kernels->lanes - 1][log2_panels](t);
  if (p.fix_counts)
    for (int64_t i = 0; i < int64_t{1} << log2_panels; ++i)
      add_fixes(t, rows, i * width, p.fixes + (panel + i) * p.most_fixes, p.fix_counts[panel + i]);

  Finish f{};
  f.sums = sums;
  f.ld = t.ld;
  f.rows = rows;
  f.cols = tail ? p.panels.tail_columns : width << log2_panels;
  f.add = p.add ? p.add + column : nullptr;
  f.a_zero = p.a_zero ? p.a_zero + row : nullptr;
  f.a_zero_cols = p.a_zero_cols + column;
  f.row_sums = p.row_sums + row;
  f.b_zero = p.b_zero ? p.b_zero + column : nullptr;
  f.output = static_cast<int>(g.output);
  const int64_t element = g.output == Int8Output::s32 || g.output == Int8Output::f32 ? 4 : 1;
  f.c = static_cast<uint8_t*>(g.c) + (row * g.ldc + column) * element;
  f.ldc = g.ldc;
  f.scale = g.scale ? g.scale + column * g.scale_stride : nullptr;
  f.scale_stride = g.scale_stride;
  f.a_scale = g.a_scale;
  f.a_scales = g.a_scales ? g.a_scales + row : nullptr;
  f.bias = g.bias ? g.bias + column : nullptr;
  const float* residual = g.residual ? g.residual + row * g.residual_ld + column : nullptr;
  const bool activates = g.output == Int8Output::f32 && g.activation;
  f.residual = activates ? nullptr : residual;
  f.residual_ld = g.residual_ld;
  f.c_zero = g.c_zero;
  f.low = g.low;
  f.high = g.high;
  if (!activates) return p.kernels->finish(f);

  float values[kMaxRows * kMaxWidth];
  float* const c = static_cast<float*>(f.c);
  f.c = values;
  f.ldc = f.cols;
  p.kernels->finish(f);
  activate_tile(g.activation, values, rows, f.cols, f.cols);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < f.cols; ++i) {
      c[r * g.ldc + i] = values[r * f.cols + i] + (residual ? residual[r * g.residual_ld + i] : 0.0f);
    }
  }
}

void run_block(const Product& p, int64_t row0, int64_t row1, int64_t panel0, int64_t panel1) {
  const int64_t full = p.kernels->rows;
  if (row1 - row0 <= 3) {  // several panels are streamed at once
    const int rows = static_cast<int>(row1 - row0);
    const int64_t whole = std::min(panel1, p.panels.whole);
    int64_t panel = panel0;
    for (int log2_panels = 3 - rows; log2_panels > 0; --log2_panels) {
      const int64_t step = int64_t{1} << log2_panels;
      for (; panel + step <= whole; panel += step) run_tile(p, row0, rows, panel, log2_panels);
    }
    for (; panel < panel1; ++panel) run_tile(p, row0, rows, panel, 0);
    return;
  }
  const int64_t sweeps = ceil_div(row1 - row0, gemm_detail::rows_per_sweep(p.lda, full));
  for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
    const int64_t begin = row0 + (row1 - row0) * sweep / sweeps, end = row0 + (row1 - row0) * (sweep + 1) / sweeps;
    const int64_t tiles = ceil_div(end - begin, full);
    for (int64_t panel = panel0; panel < panel1; ++panel) {
      int64_t row = begin;
      for (int64_t i = 0; i < tiles; ++i) {
        const int64_t row_end = begin + (end - begin) * (i + 1) / tiles;
        run_tile(p, row, static_cast<int>(row_end - row), panel, 0);
        row = row_end;
      }
    }
  }
}

/// Fills the terms that zero points add, in the arithmetic of the packed values (B is 128 lower when unsigned, A may be
/// `a_offset` higher when signed).
void zero_terms(const Int8Gemm& g, Product& p, const int32_t* column_sums, uint8_t* base, const Scratch& at) {
  const int64_t n = g.n;
  const int32_t a_offset = g.a_signed ? p.kernels->a_offset : 0, b_offset = g.b_signed ? 0 : -128;
  const auto a_zero = [&](int64_t i) { return zero_at(g.a_zero, i * g.a_zero_stride, g.a_signed) + a_offset; };
  const auto b_zero = [&](int64_t i) { return zero_at(g.b_zero, i * g.b_zero_stride, g.b_signed) + b_offset; };
  int32_t* add = reinterpret_cast<int32_t*>(base + at.add);
  int32_t* b_zeros = reinterpret_cast<int32_t*>(base + at.b_zero);
  int32_t* cols = reinterpret_cast<int32_t*>(base + at.a_zero_cols);
  // Nothing of length n is worth being made for a row or two.
  if (g.a_zero_stride == 0 && !g.bias_s32 && (!g.b_zero && g.b_signed) && g.m <= kFewRows) {
    p.b_zero = p.add = nullptr;
    const int32_t zero = a_zero(0);
    int32_t* rows = reinterpret_cast<int32_t*>(base + at.a_zero);
    std::fill_n(rows, g.m, zero);
    p.a_zero = zero == 0 ? nullptr : rows;
    p.a_zero_cols = column_sums;
    return;
  }
  bool any_b = false;
  for (int64_t i = 0; i < n; ++i) {
    b_zeros[i] = b_zero(i);
    any_b |= b_zeros[i] != 0;
  }
  p.b_zero = any_b ? b_zeros : nullptr;
  p.add = nullptr;
  p.a_zero = nullptr;
  p.a_zero_cols = cols;
  // Sums wrap around, so the products are taken without a sign.
  const auto term = [&](int64_t i) {
    return static_cast<uint32_t>(column_sums[i]) - static_cast<uint32_t>(g.k) * static_cast<uint32_t>(b_zeros[i]);
  };
  if (g.a_zero_stride != 0) {
    int32_t* rows = reinterpret_cast<int32_t*>(base + at.a_zero);
    for (int64_t i = 0; i < g.m; ++i) rows[i] = a_zero(i);
    for (int64_t i = 0; i < n; ++i) cols[i] = static_cast<int32_t>(term(i));
    p.a_zero = rows;
    if (!g.bias_s32) return;
    std::copy_n(g.bias_s32, n, add);
  } else {
    const uint32_t zero = static_cast<uint32_t>(a_zero(0));
    if (zero == 0 && !g.bias_s32) return;
    for (int64_t i = 0; i < n; ++i) {
      add[i] = static_cast<int32_t>((g.bias_s32 ? static_cast<uint32_t>(g.bias_s32[i]) : 0u) - zero * term(i));
    }
  }
  p.add = add;
}

}  // namespace

size_t packed_b_int8_bytes(int64_t k, int64_t n) {
  return static_cast<size_t>(PackedLayout(Panels(kernels().lanes, n), k).bytes);
}

namespace {

/// False when the kernels cannot take this B.
bool pack_with(const Kernels& table, int64_t k, int64_t n, const void* b, int64_t ldb, bool trans_b, bool b_signed,
               int8_t* to, ThreadPool* pool) {
  const Panels panels(table.lanes, n);
  const PackedLayout at(panels, k);
  int32_t* const sums = reinterpret_cast<int32_t*>(to + at.sums);
  int32_t* const counts = reinterpret_cast<int32_t*>(to + at.counts);
  Fix* const fixes = reinterpret_cast<Fix*>(to + at.fixes);
  counts[0] = table.split_pairs ? 1 : 0;
  std::atomic<bool> fits{true};
  const auto pack = [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end && fits.load(std::memory_order_relaxed); ++p) {
      const bool tail = p == panels.whole;
      const int64_t column = p * panels.width, width = tail ? panels.tail_width : panels.width;
      int8_t* const panel = to + column * padded_k(table, k);
      table.pack_b(k, tail ? panels.tail_columns : panels.width, width,
                   static_cast<const uint8_t*>(b) + (k > 0 ? column * (trans_b ? ldb : 1) : 0), ldb, trans_b, b_signed,
                   panel, sums + column);
      if (!table.split_pairs) continue;
      counts[1 + p] = table.split_pairs(k, width, panel, fixes + p * at.most, at.most);
      if (counts[1 + p] < 0) fits = false;
    }
  };
  if (pool)
    pool->parallel_for(panels.count(), static_cast<double>(k * panels.width) * 0.5, pack);
  else
    pack(0, panels.count());
  return fits;
}

}  // namespace

void pack_b_int8(int64_t k, int64_t n, const void* b, int64_t ldb, bool trans_b, bool b_signed, void* out,
                 ThreadPool* pool) {
  int8_t* const to = static_cast<int8_t*>(out);
  const Kernels* pairs = pair_kernels();
  if (!pairs || !pack_with(*pairs, k, n, b, ldb, trans_b, b_signed, to, pool))
    pack_with(kernels(), k, n, b, ldb, trans_b, b_signed, to, pool);
}

size_t gemm_int8_workspace(int64_t m, int64_t n, int64_t k, bool b_packed) {
  return static_cast<size_t>(Scratch(kernels(), m, n, k, b_packed).bytes);
}

void gemm_int8(const Int8Gemm& g, void* workspace, ThreadPool& pool) {
  if (g.m <= 0 || g.n <= 0) return;
  const Scratch at(kernels(), g.m, g.n, g.k, g.b_packed);
  uint8_t* const base = static_cast<uint8_t*>(workspace);
  const int8_t* b = static_cast<const int8_t*>(g.b);
  if (!g.b_packed) {  // one use does not pay a search for fixes
    int8_t* const to = reinterpret_cast<int8_t*>(base + at.b);
    pack_with(kernels(), g.k, g.n, g.b, g.ldb, g.trans_b, g.b_signed, to, &pool);
    b = to;
  }
  const Panels panels(kernels().lanes, g.n);
  const PackedLayout packed(panels, g.k);
  const int32_t* const counts = reinterpret_cast<const int32_t*>(b + packed.counts);
  const bool pairs = counts[0] != 0;
  const Kernels& table = pairs ? *pair_kernels() : kernels();
  Product p{.kernels = &table, .g = &g, .panels = panels, .groups = ceil_div(g.k, table.group), .panel_bytes = 0};
  p.lda = a_row_bytes(table, g.k);
  p.a = base + at.a;
  p.b = b;
  if (pairs) p.fix_counts = counts + 1;
  p.fixes = reinterpret_cast<const Fix*>(b + packed.fixes);
  p.most_fixes = packed.most;
  p.panel_bytes = padded_k(table, g.k) * p.panels.width;
  int32_t* const row_sums = reinterpret_cast<int32_t*>(base + at.row_sums);
  p.row_sums = row_sums;
  pool.parallel_for(g.m, static_cast<double>(g.k) * 0.1 + 10, [&](int64_t begin, int64_t end) {
    table.pack_a(end - begin, g.k, static_cast<const uint8_t*>(g.a) + begin * g.lda, g.lda, g.a_signed,
                 base + at.a + begin * p.lda, p.lda, row_sums + begin);
  });
  const int32_t* column_sums = reinterpret_cast<const int32_t*>(b + packed.sums);
  zero_terms(g, p, column_sums, base, at);
  const double weights = static_cast<double>(g.k) * static_cast<double>(g.n);
  const double ns = std::max(2 * weights * static_cast<double>(g.m) / table.ops_per_ns, weights / 16) + 50;
  gemm_detail::run_grid(g.m, g.n, p.panels.count(), table.rows, ns, &pool,
                        [&](int64_t r0, int64_t r1, int64_t p0, int64_t p1) { run_block(p, r0, r1, p0, p1); });
}

}  // namespace epona
