#include "kernels/gemm.h"

#include <algorithm>
#include <limits>

#include "kernels/gemm_grid.h"
#include "kernels/gemm_tile.h"

namespace epona {
namespace {

using namespace gemm_detail;

// A quarter of a sweep: one panel of B, which is swept for each tile of rows. Longer ones are cut along k.
constexpr int64_t kPanelBytes = 64 * 1024;
// Below this size plain B is read in place, whatever m is.
constexpr int64_t kInPlaceBytes = 64 * 1024;
constexpr int64_t kPackRows = 32;
enum class BMode { packed, pack, in_place };

/// How a product is carried out: fixed by its sizes.
struct Layout {
  BMode b_mode;
  bool shared_b;     // one B for the whole batch
  int64_t slots;     // batch entries in flight, each with its own scratch
  int64_t a_floats;  // per slot: A transposed
  int64_t b_floats;  // per slot, or once when B is shared
  double entry_ns;   // one batch entry on one thread
  size_t bytes() const {
    return sizeof(float) * static_cast<size_t>(slots * a_floats + (shared_b ? 1 : slots) * b_floats);
  }
};

double cost_ns(const Kernels& kernels, const Gemm& g) {
  const double weights = static_cast<double>(g.k) * static_cast<double>(g.n);
  return std::max(2 * weights * static_cast<double>(g.m) / kernels.flops_per_ns, weights * 4 / 16) + 50;
}

bool one_matrix(const Gemm& g) {
  if (g.batch == 1) return true;
  const GemmEpilogue& e = g.epilogue;
  return !g.a_offsets && !g.b_offsets && g.b_stride == 0 && !g.trans_a && g.a_stride == g.m * g.lda &&
         g.c_stride == g.m * g.ldc && (!e.bias || (e.bias_row_stride * g.m == g.bias_stride)) &&
         (!e.residual || g.residual_stride == g.m * e.residual_ld);
}

/// A batch that is one taller matrix becomes that matrix.
Gemm folded(Gemm g) {
  if (g.batch > 1 && one_matrix(g)) {
    g.m *= g.batch;
    g.batch = 1;
  }
  return g;
}

Layout layout_of(const Kernels& kernels, const Gemm& g, int threads) {
  Layout l{};
  const Panels panels(kernels.lanes, g.n);
  if (g.b_packed) {
    l.b_mode = BMode::packed;
  } else if (!g.trans_b && (g.m <= 2 * kernels.rows || g.k * g.n * 4 <= kInPlaceBytes)) {
    l.b_mode = BMode::in_place;
    l.b_floats = round_up(g.k * panels.tail_width, 16);
  } else {
    l.b_mode = BMode::pack;
    l.b_floats = round_up(g.k * panels.columns(), 16);
  }
  l.shared_b = g.batch == 1 || (!g.b_offsets && g.b_stride == 0);
  l.a_floats = g.trans_a ? round_up(g.m * g.k, 16) : 0;
  l.entry_ns = cost_ns(kernels, g);
  const double total = l.entry_ns * static_cast<double>(g.batch);
  // Few long entries are better split inside.
  const bool inside = g.batch < 4 * threads && l.entry_ns > 10 * kTaskNs;
  l.slots =
      inside ? 1 : std::clamp<int64_t>(static_cast<int64_t>(total / kTaskNs), 1, std::min<int64_t>(threads, g.batch));
  return l;
}

/// One product with its operands in the form that the tiles read.
struct Product {
  const Kernels* kernels;
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  Panels panels;
  const float *b, *tail;
  int64_t ldb, panel_stride;
  float* c;
  int64_t ldc;
  GemmEpilogue e;
  bool in_registers;  // the epilogue, as far as the activation allows
  bool clamp;         // the activation is a clamp
  float low, high;
};

void set_epilogue(Product& p, const GemmEpilogue& e) {
  p.e = e;
  const Activation& act = e.activation;
  p.low = act.kind == ActivationKind::clip ? act.a : 0;
  p.high = act.kind == ActivationKind::clip ? act.b : std::numeric_limits<float>::infinity();
  p.clamp = act.kind == ActivationKind::relu || act.kind == ActivationKind::clip;
  const bool plain_bias = !e.bias || (e.bias_scale == 1 && e.bias_row_stride == 0 && e.bias_col_stride == 1);
  const bool residual_after = e.residual && e.residual_last && act.kind != ActivationKind::none;
  p.in_registers = e.alpha == 1 && plain_bias && !residual_after;
}

/// rows x columns of C at (row, column), from sums in a small buffer.
void finish(const Product& p, float* sums, int64_t ld, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  const GemmEpilogue& e = p.e;
  float* c = p.c + row * p.ldc + column;
  const float* residual = e.residual ? e.residual + row * e.residual_ld + column : nullptr;
  const bool activates = e.activation.kind != ActivationKind::none;
  const bool residual_after = residual && e.residual_last && activates;
  Finish f{sums, ld, activates ? sums : c, activates ? ld : p.ldc, rows, columns, e.alpha, e.bias_scale};
  f.bias = e.bias ? e.bias + row * e.bias_row_stride + column * e.bias_col_stride : nullptr;
  f.bias_row_stride = e.bias_row_stride;
  f.bias_col_stride = e.bias_col_stride;
  f.residual = residual_after ? nullptr : residual;
  f.residual_ld = e.residual_ld;
  p.kernels->finish(f);
  if (!activates) return;
  activate_tile(e.activation, sums, rows, columns, ld);
  Finish out{sums, ld, c, p.ldc, rows, columns};
  out.residual = residual_after ? residual : nullptr;
  out.residual_ld = e.residual_ld;
  p.kernels->finish(out);
}

/// Rows, panels and a range of k that one tile works on.
struct Range {
  int64_t row;
  int rows;
  int64_t panel;
  int log2_panels;  ///< more than one panel only for whole ones
  int64_t k0, k1;
};

void run_tile(const Product& p, const Range& r, const float* prefetch = nullptr, int64_t prefetch_step = 0) {
  const bool tail = r.panel == p.panels.whole;
  const int64_t column = r.panel * p.panels.width;
  const int64_t width = tail ? p.panels.tail_width : p.panels.width;
  const int64_t columns = tail ? p.panels.tail_columns : p.panels.width << r.log2_panels;
  float* const c = p.c + r.row * p.ldc + column;
  Tile t{};
  t.k = r.k1 - r.k0;
  t.a = p.a + r.row * p.lda + r.k0;
  t.lda = p.lda;
  t.ldb = tail ? width : p.ldb;
  t.b = (tail ? p.tail : p.b + r.panel * p.panel_stride) + r.k0 * t.ldb;
  t.panel_stride = p.panel_stride;
  t.start = r.k0 > 0 ? c : nullptr;
  t.start_ld = p.ldc;
  t.prefetch = prefetch ? prefetch : t.b;
  t.prefetch_step = prefetch ? prefetch_step : 0;
  const auto kernel = p.kernels->tile[r.rows][width / p.kernels->lanes - 1][r.log2_panels];
  if (r.k1 < p.k) {  // a first part of the sum
    t.c = c;
    t.ldc = p.ldc;
    return kernel(t);
  }
  if (p.in_registers && columns == width << r.log2_panels) {
    const GemmEpilogue& e = p.e;
    t.c = c;
    t.ldc = p.ldc;
    t.bias = e.bias ? e.bias + column : nullptr;
    t.residual = e.residual ? e.residual + r.row * e.residual_ld + column : nullptr;
    t.residual_ld = e.residual_ld;
    t.clamp = p.clamp;
    t.low = p.low;
    t.high = p.high;
    kernel(t);
    if (!p.clamp && e.activation.kind != ActivationKind::none) activate_tile(e.activation, c, r.rows, columns, p.ldc);
    return;
  }
  alignas(64) float sums[kMaxRows * kMaxWidth];
  t.c = sums;
  t.ldc = width << r.log2_panels;
  kernel(t);
  finish(p, sums, t.ldc, r.row, column, r.rows, columns);
}

/// A few rows: several panels are streamed at once, which is what fills the memory bus.
void run_short(const Product& p, int64_t row, int rows, int64_t panel0, int64_t panel1) {
  int64_t panel = panel0;
  const int64_t whole = std::min(panel1, p.panels.whole);
  for (int log2_panels = rows == 1 ? 2 : 1; log2_panels > 0; --log2_panels) {
    const int64_t step = int64_t{1} << log2_panels;
    for (; panel + step <= whole; panel += step) run_tile(p, {row, rows, panel, log2_panels, 0, p.k});
  }
  for (; panel < panel1; ++panel) run_tile(p, {row, rows, panel, 0, 0, p.k});
}

/// Rows [row0, row1) of panels [panel0, panel1), on this thread.
void run_block(const Product& p, int64_t row0, int64_t row1, int64_t panel0, int64_t panel1) {
  const int64_t full = p.kernels->rows, k = std::max<int64_t>(p.k, 1);
  if (row1 - row0 <= 3) return run_short(p, row0, static_cast<int>(row1 - row0), panel0, panel1);
  // Cutting k keeps first parts of the sums in C, so a residual may not lie there.
  const bool cut = (row1 - row0) * k * 4 > kSweepBytes && k * p.panels.width * 4 > kPanelBytes && p.e.residual != p.c;
  const int64_t cuts = cut ? ceil_div(k * p.panels.width * 4, kPanelBytes) : 1;
  const int64_t sweeps = ceil_div(row1 - row0, rows_per_sweep(4 * ceil_div(k, cuts), full));
  for (int64_t pass = 0; pass < sweeps * cuts; ++pass) {
    const int64_t sweep = pass / cuts, part = pass % cuts;
    const int64_t begin = row0 + (row1 - row0) * sweep / sweeps, end = row0 + (row1 - row0) * (sweep + 1) / sweeps;
    const int64_t tiles = ceil_div(end - begin, full);
    int64_t k0 = p.k * part / cuts;
    const int64_t k1 = p.k * (part + 1) / cuts;
    // The next panel is fetched by all the row tiles of this one together: DRAM cannot keep up with one of them.
    const int64_t step = std::clamp<int64_t>(ceil_div(p.panels.width, tiles), 1, 16);
    for (int64_t panel = panel0; panel < panel1; ++panel) {
      if (panel == p.panels.whole) {  // too narrow for parts in C
        if (part < cuts - 1) break;
        k0 = 0;
      }
      const float* next = p.b + (panel + 1) * p.panel_stride + k0 * p.ldb;
      const float* const next_end = next + (k1 - k0) * p.panels.width;
      int64_t row = begin;
      for (int64_t i = 0; i < tiles; ++i) {  // the rows are shared out evenly
        const int64_t row_end = begin + (end - begin) * (i + 1) / tiles;
        run_tile(p, {row, static_cast<int>(row_end - row), panel, 0, k0, k1}, next < next_end ? next : nullptr, step);
        row = row_end;
        next += (k1 - k0) * step;
      }
    }
  }
}

void run_product(const Product& p, double ns, ThreadPool* pool) {
  run_grid(p.m, p.n, p.panels.count(), p.kernels->rows, ns, pool,
           [&](int64_t r0, int64_t r1, int64_t p0, int64_t p1) { run_block(p, r0, r1, p0, p1); });
}

void pack_panels(const Kernels& kernels, int64_t k, int64_t n, const float* b, int64_t ldb, bool trans, float* out,
                 ThreadPool* pool) {
  const Panels panels(kernels.lanes, n);
  // Rows of a plain B are read a few at a time: a panel is one cache line wide, and a page for each line is one too many.
  const int64_t step = trans ? std::max<int64_t>(k, 1) : kPackRows;
  const auto pack = [&](int64_t begin, int64_t end) {
    for (int64_t k0 = 0; k0 < k; k0 += step) {
      for (int64_t p = begin; p < end; ++p) {
        const bool tail = p == panels.whole;
        const int64_t width = tail ? panels.tail_width : panels.width;
        kernels.pack(std::min(step, k - k0), tail ? panels.tail_columns : panels.width, width,
                     b + p * panels.width * (trans ? ldb : 1) + k0 * ldb, ldb, trans,
                     out + p * panels.width * k + k0 * width);
      }
    }
  };
  if (pool) {
    pool->parallel_for(panels.count(), static_cast<double>(k * panels.width) * 0.4, pack);
  } else {
    pack(0, panels.count());
  }
}

/// Packs what has to be packed of B into `scratch`.
void prepare_b(const Gemm& g, const Layout& l, const float* b, float* scratch, Product& p, ThreadPool* pool) {
  const Kernels& kernels = *p.kernels;
  p.ldb = p.panels.width;
  p.panel_stride = p.panels.width * g.k;
  if (l.b_mode == BMode::in_place) {
    p.b = b;
    p.ldb = g.ldb;
    p.panel_stride = p.panels.width;
    p.tail = scratch;
    if (p.panels.tail_width > 0) {
      kernels.pack(g.k, p.panels.tail_columns, p.panels.tail_width, b + p.panels.whole * p.panels.width, g.ldb, false,
                   scratch);
    }
    return;
  }
  if (l.b_mode == BMode::pack) {
    pack_panels(kernels, g.k, g.n, b, g.ldb, g.trans_b, scratch, pool);
    b = scratch;
  }
  p.b = b;
  p.tail = b + p.panels.whole * p.panel_stride;
}

}  // namespace

size_t packed_b_floats(int64_t k, int64_t n) {
  return static_cast<size_t>(k) * static_cast<size_t>(Panels(kernels().lanes, n).columns());
}

void pack_b(int64_t k, int64_t n, const float* b, int64_t ldb, bool trans_b, float* out, ThreadPool* pool) {
  pack_panels(kernels(), k, n, b, ldb, trans_b, out, pool);
}

size_t gemm_workspace(const Gemm& g, int threads) { return layout_of(kernels(), folded(g), threads).bytes(); }

void gemm(const Gemm& original, void* workspace, ThreadPool& pool) {
  Gemm g = folded(original);
  static constexpr float kNothing = 0;
  if (g.k == 0) g.a = g.b = &kNothing;  // empty matrices may have no address to count from
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return;
  const Kernels& table = kernels();
  const Layout l = layout_of(table, g, pool.threads());
  float* const scratch = static_cast<float*>(workspace);
  Product base{&table, g.m, g.n,   g.k,   nullptr, g.lda, Panels(table.lanes, g.n), nullptr, nullptr, 0, 0, nullptr,
               g.ldc,  {},  false, false, 0,       0};
  set_epilogue(base, g.epilogue);
  float* const slots = scratch + (l.shared_b ? l.b_floats : 0);
  const int64_t slot_floats = l.a_floats + (l.shared_b ? 0 : l.b_floats);
  if (l.shared_b) prepare_b(g, l, g.b, scratch, base, &pool);

  const auto entry = [&](int64_t i, int64_t slot, ThreadPool* inner) {
    Product p = base;
    float* mine = slots + slot * slot_floats;
    if (!l.shared_b)
      prepare_b(g, l, g.b + (g.b_offsets ? g.b_offsets[i] : i * g.b_stride), mine + l.a_floats, p, inner);
    p.a = g.a + (g.a_offsets ? g.a_offsets[i] : i * g.a_stride);
    if (g.trans_a) {
      table.transpose(g.k, g.m, p.a, g.lda, mine, g.k);
      p.a = mine;
      p.lda = g.k;
    }
    p.c = g.c + i * g.c_stride;
    if (p.e.bias) p.e.bias += i * g.bias_stride;
    if (p.e.residual) p.e.residual += i * g.residual_stride;
    run_product(p, l.entry_ns, inner);
  };
  if (l.slots == 1) {
    for (int64_t i = 0; i < g.batch; ++i) entry(i, 0, &pool);
    return;
  }
  pool.run(l.slots, [&](int64_t slot) {
    for (int64_t i = g.batch * slot / l.slots; i < g.batch * (slot + 1) / l.slots; ++i) entry(i, slot, nullptr);
  });
}

}  // namespace epona
