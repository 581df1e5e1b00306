#pragma once
// How the matrix products cut their work: panels of columns, and a grid of tasks.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/thread_pool.h"

namespace epona::gemm_detail {

// Half of a small L2: rows of A that are swept again for each panel of B stay there.
constexpr int64_t kSweepBytes = 256 * 1024;
// A task is not worth handing over for less.
constexpr double kTaskNs = 8000;

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/// Columns [0, n) as whole panels of two vectors and a last one that may be narrower.
struct Panels {
  int64_t width, whole, tail_columns, tail_width;

  Panels(int lanes, int64_t n)
      : width(2 * lanes), whole(n / width), tail_columns(n % width), tail_width(round_up(tail_columns, lanes)) {}
  int64_t count() const { return whole + (tail_width > 0 ? 1 : 0); }
  int64_t columns() const { return whole * width + tail_width; }
};

struct Grid {
  int64_t rows = 1, columns = 1;
};

/// Cuts `tiles` row tiles (m rows) by `panels` panels (n columns) into the grid of tasks that reads the least twice.
inline Grid split_grid(int64_t tiles, int64_t panels, int64_t m, int64_t n, double ns, int threads) {
  Grid best;
  if (threads <= 1) return best;
  const double most = ns > 16 * kTaskNs * threads ? 4 * threads : threads;
  const int64_t wanted = std::min(static_cast<int64_t>(std::min(ns / kTaskNs, most)), tiles * panels);
  if (wanted <= 1) return best;
  double best_score = std::numeric_limits<double>::infinity();
  for (int64_t columns = 1; columns <= std::min(wanted, panels); ++columns) {
    const int64_t rows = std::min(ceil_div(wanted, columns), tiles);
    // The longest task counts, and what is read again: A by each column range, B by each row range.
    const double work =
        static_cast<double>(ceil_div(tiles, rows) * ceil_div(panels, columns)) / static_cast<double>(tiles * panels);
    const double again = static_cast<double>(columns * m + rows * n) / static_cast<double>(m + n);
    const double score = work * static_cast<double>(wanted) * (1 + 0.05 * again);
    if (score < best_score) {
      best_score = score;
      best = {rows, columns};
    }
  }
  return best;
}

/// Calls fn(row0, row1, panel0, panel1) for each task of the grid.
template <class F>
void run_grid(int64_t m, int64_t n, int64_t panels, int tile_rows, double ns, ThreadPool* pool, F&& fn) {
  const int64_t tiles = ceil_div(m, tile_rows);
  const Grid grid = pool ? split_grid(tiles, panels, m, n, ns, pool->threads()) : Grid{};
  if (grid.rows * grid.columns == 1) return fn(int64_t{0}, m, int64_t{0}, panels);
  pool->run(grid.rows * grid.columns, [&](int64_t task) {
    const int64_t r = task / grid.columns, c = task % grid.columns;
    const auto row = [&](int64_t i) { return std::min(m, tiles * i / grid.rows * tile_rows); };
    fn(row(r), row(r + 1), panels * c / grid.columns, panels * (c + 1) / grid.columns);
  });
}

/// Rows that one sweep over the panels takes, `row_bytes` of A each: a multiple of the tile's rows.
inline int64_t rows_per_sweep(int64_t row_bytes, int64_t tile_rows) {
  return std::max(tile_rows, kSweepBytes / std::max<int64_t>(row_bytes, 1) / tile_rows * tile_rows);
}

}  // namespace epona::gemm_detail
