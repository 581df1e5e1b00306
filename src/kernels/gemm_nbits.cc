#include "kernels/gemm_nbits.h"

#include <algorithm>
#include <cstring>

#include "kernels/gemm_grid.h"
#include "kernels/gemm_nbits_tile.h"
#include "kernels/gemm_tile.h"
#include "kernels/parallel.h"

namespace epona {
namespace {

using gemm_detail::ceil_div;
using gemm_detail::Panels;
using gemm_detail::round_up;
using nbits_detail::Kernels;
using nbits_detail::Tile;

/// Packed weights start with this, so that products need not be told whether there are zero points.
struct Header {
  int64_t has_zeros;
  int64_t padding[7];
};
static_assert(sizeof(Header) == 64);

int64_t zero_bytes(NBitsMode mode, bool has_zeros) { return !has_zeros ? 0 : mode == NBitsMode::int8 ? 1 : 4; }

/// Bytes of one block in a panel of `width` columns.
int64_t block_bytes(int bits, int64_t block, NBitsMode mode, bool has_zeros, int64_t width) {
  return width * (block * bits / 8 + 4 + zero_bytes(mode, has_zeros));
}

bool has_zeros(const NBitsWeights& w) { return w.zeros != nullptr || w.float_zeros != nullptr; }

int unpack(const uint8_t* p, int64_t i, int bits) {
  const int64_t bit = i * bits;
  return p[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
}

/// The values of one column's block, [block] bytes, to its lane in the panel.
void put_values(const uint8_t* q, int bits, int64_t block, NBitsMode mode, int group, int64_t width, int64_t c,
                uint8_t* out) {
  if (mode == NBitsMode::f32) {
    const int per_lane = 32 / bits;
    for (int64_t k = 0; k < block; k += per_lane) {
      uint32_t lane = 0;
      for (int j = 0; j < per_lane; ++j) lane |= static_cast<uint32_t>(q[k + j]) << (j * bits);
      std::memcpy(out + (k / per_lane * width + c) * 4, &lane, 4);
    }
  } else if (bits == 4) {
    for (int64_t k = 0; k < block; k += 8) {
      for (int j = 0; j < 4; ++j) out[(k / 8 * width + c) * 4 + j] = static_cast<uint8_t>(q[k + j] | q[k + 4 + j] << 4);
    }
  } else {
    for (int64_t k = 0; k < block; k += group) {
      for (int j = 0; j < group; ++j) out[k * width + c * group + j] = q[k + j];
    }
  }
}

void pack_panel(const Kernels& kernels, const NBitsWeights& w, NBitsMode mode, int64_t column, int64_t columns,
                int64_t width, uint8_t* out) {
  const int64_t blocks = ceil_div(w.k, w.block), row_bytes = w.block * w.bits / 8;
  const int64_t zero_row = ceil_div(blocks * w.bits, 8);
  const bool zeros = has_zeros(w);
  const int64_t bytes = block_bytes(w.bits, w.block, mode, zeros, width);
  std::memset(out, 0, static_cast<size_t>(bytes * blocks));
  uint8_t values[256] = {};  // the largest block; blocks are multiples of 16, as the layouts need
  for (int64_t i = 0; i < blocks; ++i, out += bytes) {
    float* scales = reinterpret_cast<float*>(out + width * row_bytes);
    uint8_t* zero = out + width * (row_bytes + 4);
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t n = column + c;
      const uint8_t* q = w.quants + (n * blocks + i) * row_bytes;
      for (int64_t k = 0; k < w.block; ++k) values[k] = static_cast<uint8_t>(unpack(q, k, w.bits));
      put_values(values, w.bits, w.block, mode, kernels.group, width, c, out);
      scales[c] = w.scales[n * blocks + i];
      if (!zeros) continue;
      const int z = w.zeros ? unpack(w.zeros + n * zero_row, i, w.bits) : 0;
      if (mode == NBitsMode::int8) {
        zero[c] = static_cast<uint8_t>(z);
      } else {
        const float f = w.float_zeros ? w.float_zeros[n * blocks + i] : static_cast<float>(z);
        std::memcpy(zero + c * 4, &f, 4);
      }
    }
  }
}

struct Product {
  const Kernels* kernels;
  const NBitsGemm* g;
  Panels panels;
  int64_t blocks;
  bool zeros;
  const uint8_t* b;
  nbits_detail::RoundedA a;
  const float* a_sums;

  int64_t bytes() const { return block_bytes(g->bits, g->block, g->mode, zeros, panels.width); }
  const uint8_t* panel(int64_t i) const { return b + i * blocks * bytes(); }
};

void finish(const Product& p, float* sums, int64_t ld, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  const NBitsGemm& g = *p.g;
  const auto& table = gemm_detail::kernels();
  float* c = g.c + row * g.ldc + column;
  const float* residual = g.residual ? g.residual + row * g.residual_ld + column : nullptr;
  gemm_detail::Finish f{sums, ld, c, g.ldc, rows, columns};
  f.residual_ld = g.residual_ld;
  f.bias = g.bias ? g.bias + column : nullptr;
  f.bias_col_stride = 1;
  if (g.activation) {
    f.c = sums;
    f.ldc = ld;
    table.finish(f);
    activate_tile(g.activation, sums, rows, columns, ld);
    f.c = c;
    f.ldc = g.ldc;
    f.bias = nullptr;
  }
  f.residual = residual;
  table.finish(f);
}

int64_t columns_of(const Product& p, int64_t panel) {
  return panel == p.panels.whole ? p.panels.tail_columns : p.panels.width;
}

void run_int8(const Product& p, int64_t row0, int64_t row1, int64_t panel0, int64_t panel1) {
  const NBitsGemm& g = *p.g;
  const int wide = g.bits == 8;
  alignas(64) float sums[nbits_detail::kMaxRows * nbits_detail::kMaxWidth];
  const auto tile_at = [&](int64_t row, int64_t panel) {
    Tile t{};
    t.blocks = p.blocks;
    t.block = g.block;
    t.block_bytes = p.bytes();
    t.zeros = p.zeros;
    t.a = p.a;
    t.a.values += row * p.a.ld;
    t.a.scales += row * p.blocks;
    t.a.sums += row * p.blocks;
    t.b = p.panel(panel);
    t.panel_stride = p.blocks * t.block_bytes;
    t.sums = sums;
    t.ld = p.panels.width;
    return t;
  };
  int64_t panel = panel0;
  if (row1 - row0 == 1) {  // four panels are streamed at once
    for (; panel + 4 <= std::min(panel1, p.panels.whole); panel += 4) {
      Tile t = tile_at(row0, panel);
      t.ld = 4 * p.panels.width;
      p.kernels->int8_streams[wide](t);
      finish(p, sums, t.ld, row0, panel * p.panels.width, 1, t.ld);
    }
  }
  const int64_t tiles = ceil_div(row1 - row0, p.kernels->rows);
  for (; panel < panel1; ++panel) {
    int64_t row = row0;
    for (int64_t i = 0; i < tiles; ++i) {
      const int64_t row_end = row0 + (row1 - row0) * (i + 1) / tiles;
      const Tile t = tile_at(row, panel);
      p.kernels->int8[wide][row_end - row](t);
      finish(p, sums, t.ld, row, panel * p.panels.width, row_end - row, columns_of(p, panel));
      row = row_end;
    }
  }
}

/// One row, 4 bits, straight from the packed weights.
void run_f32_row(const Product& p, int64_t panel0, int64_t panel1) {
  alignas(64) float sums[nbits_detail::kMaxWidth];
  for (int64_t panel = panel0; panel < panel1; ++panel) {
    Tile t{};
    t.blocks = p.blocks;
    t.block = p.g->block;
    t.block_bytes = p.bytes();
    t.zeros = p.zeros;
    t.a_f32 = p.g->a;
    t.a_sums = p.a_sums;
    t.b = p.panel(panel);
    t.sums = sums;
    p.kernels->f32(t);
    finish(p, sums, p.panels.width, 0, panel * p.panels.width, 1, columns_of(p, panel));
  }
}

/// A panel of weights widened to fp32 in `scratch`, then the tiles of the float product.
void run_f32_panel(const Product& p, int64_t panel, float* scratch) {
  const NBitsGemm& g = *p.g;
  const auto& table = gemm_detail::kernels();
  const int64_t width = p.panels.width;
  p.kernels->widen(g.bits, p.zeros, p.blocks, g.block, width, p.panel(panel), scratch);
  alignas(64) float sums[gemm_detail::kMaxRows * gemm_detail::kMaxWidth];
  const int64_t tiles = ceil_div(g.m, table.rows);
  int64_t row = 0;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t row_end = g.m * (i + 1) / tiles;
    gemm_detail::Tile t{};
    t.k = g.k;
    t.a = g.a + row * g.lda;
    t.lda = g.lda;
    t.b = scratch;
    t.ldb = width;
    t.c = sums;
    t.ldc = width;
    t.prefetch = scratch;
    table.tile[row_end - row][1][0](t);
    finish(p, sums, width, row, panel * p.panels.width, row_end - row, columns_of(p, panel));
    row = row_end;
  }
}

struct Scratch {
  int64_t values = 0, scales = 0, sums = 0, widened = 0, widened_bytes = 0, bytes = 0;

  Scratch(const Kernels& kernels, const NBitsGemm& g, int threads) {
    const int64_t blocks = ceil_div(g.k, g.block), k = blocks * g.block;
    const auto take = [&](int64_t size) {
      const int64_t here = bytes;
      bytes += round_up(size, 64);
      return here;
    };
    if (g.mode == NBitsMode::int8) {
      values = take(g.m * k * (g.bits == 8 && kernels.wide ? 2 : 1) + 64);
      scales = take(g.m * blocks * 4);
      sums = take(g.m * blocks * 4);
    } else if (g.m == 1 && g.bits == 4) {
      values = take(k * 4);
      sums = take(blocks * 4);
    } else {
      widened_bytes = round_up(k * 2 * kernels.lanes * 4, 64);
      widened = take(widened_bytes * threads);
    }
  }
};

}  // namespace

bool nbits_int8_supported(const NBitsWeights& w) {
  return (w.bits == 4 || w.bits == 8) && w.block % 16 == 0 && w.float_zeros == nullptr;
}

size_t packed_nbits_bytes(const NBitsWeights& w, NBitsMode mode) {
  const Panels panels(nbits_detail::kernels().lanes, w.n);
  const int64_t panel_bytes = ceil_div(w.k, w.block) * block_bytes(w.bits, w.block, mode, has_zeros(w), panels.width);
  return sizeof(Header) + static_cast<size_t>(panels.count() * panel_bytes);
}

void pack_nbits(const NBitsWeights& w, NBitsMode mode, void* out, ThreadPool* pool) {
  const Kernels& table = nbits_detail::kernels();
  const Panels panels(table.lanes, w.n);
  Header header{};
  header.has_zeros = has_zeros(w) ? 1 : 0;
  std::memcpy(out, &header, sizeof(header));
  uint8_t* const to = static_cast<uint8_t*>(out) + sizeof(header);
  const int64_t panel_bytes = ceil_div(w.k, w.block) * block_bytes(w.bits, w.block, mode, has_zeros(w), panels.width);
  const auto pack = [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const bool tail = p == panels.whole;
      pack_panel(table, w, mode, p * panels.width, tail ? panels.tail_columns : panels.width, panels.width,
                 to + p * panel_bytes);
    }
  };
  if (pool) {
    pool->parallel_for(panels.count(), static_cast<double>(w.k * panels.width) * 2, pack);
  } else {
    pack(0, panels.count());
  }
}

size_t gemm_nbits_workspace(const NBitsGemm& g, int threads) {
  return static_cast<size_t>(Scratch(nbits_detail::kernels(), g, threads).bytes);
}

void gemm_nbits(const NBitsGemm& g, void* workspace, ThreadPool& pool) {
  if (g.m <= 0 || g.n <= 0) return;
  const Kernels& table = nbits_detail::kernels();
  const Scratch at(table, g, pool.threads());
  uint8_t* const base = static_cast<uint8_t*>(workspace);
  const uint8_t* b = static_cast<const uint8_t*>(g.b);
  Header header;
  std::memcpy(&header, b, sizeof(header));
  Product p{&table, &g,     Panels(table.lanes, g.n), ceil_div(g.k, g.block), header.has_zeros != 0, b + sizeof(header),
            {},     nullptr};
  const double weights = static_cast<double>(g.k) * static_cast<double>(g.n);
  if (g.mode == NBitsMode::int8) {
    const bool wide = g.bits == 8 && table.wide;
    float* const scales = reinterpret_cast<float*>(base + at.scales);
    int32_t* const sums = reinterpret_cast<int32_t*>(base + at.sums);
    p.a = {base + at.values, p.blocks * g.block * (wide ? 2 : 1), scales, sums};
    pool.parallel_for(g.m, static_cast<double>(g.k) * 0.3 + 10, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        table.round_a(g.k, g.block, g.a + r * g.lda, wide, base + at.values + r * p.a.ld, scales + r * p.blocks,
                      sums + r * p.blocks);
      }
    });
    const double ns = weights * static_cast<double>(g.m) / (g.bits == 4 ? 60 : 30) + 50;
    gemm_detail::run_grid(g.m, g.n, p.panels.count(), table.rows, ns, &pool,
                          [&](int64_t r0, int64_t r1, int64_t p0, int64_t p1) { run_int8(p, r0, r1, p0, p1); });
    return;
  }
  if (g.m == 1 && g.bits == 4) {
    // A is copied and padded to whole blocks; its sums weigh the zero points.
    float* const a = reinterpret_cast<float*>(base + at.values);
    float* const sums = reinterpret_cast<float*>(base + at.sums);
    std::copy_n(g.a, g.k, a);
    std::fill(a + g.k, a + p.blocks * g.block, 0.0f);
    for (int64_t i = 0; i < p.blocks; ++i) {
      float total = 0;
      for (int64_t k = 0; k < g.block; ++k) total += a[i * g.block + k];
      sums[i] = total;
    }
    NBitsGemm padded = g;
    padded.a = a;
    p.g = &padded;
    p.a_sums = sums;
    pool.parallel_for(p.panels.count(), static_cast<double>(g.k * p.panels.width) / 12,
                      [&](int64_t begin, int64_t end) { run_f32_row(p, begin, end); });
    return;
  }
  const double panel_ns = static_cast<double>(g.k * p.panels.width) * (0.3 + static_cast<double>(g.m) / 40);
  parallel_items(pool, p.panels.count(), panel_ns, [&](int64_t slot, int64_t panel) {
    run_f32_panel(p, panel, reinterpret_cast<float*>(base + at.widened + slot * at.widened_bytes));
  });
}

}  // namespace epona
