#include "kernels/pool.h"

#include <algorithm>
#include <limits>

#include "kernels/parallel.h"
#include "kernels/pool_span.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool.cc"
#include "kernels/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef EPONA_POOL_WINDOW
#define EPONA_POOL_WINDOW
namespace epona {
/// The part of a pooling window that lies inside the image, in input pixels.
struct PoolWindow {
  int64_t first, rows, columns;
  int64_t row_step, column_step;
  float scale;  ///< of the sum
};
}  // namespace epona
#endif

HWY_BEFORE_NAMESPACE();
namespace epona::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr int kVectors = 16 / static_cast<int>(HWY_MAX_LANES_D(D));
constexpr int kLanes = static_cast<int>(HWY_MAX_LANES_D(D));
constexpr int64_t kRun = 32;

/// NaN if either is: x86 max returns its second operand when one is NaN, so x = NaN wins and best = NaN must be kept.
HWY_INLINE V larger(V best, V x) { return hn::IfThenElse(hn::IsNaN(best), best, hn::Max(best, x)); }

template <bool kMax>
HWY_INLINE void reduce(const float* x, const PoolWindow& w, float* y) {
  constexpr D d;
  V acc[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    acc[v] = kMax ? hn::Set(d, -std::numeric_limits<float>::infinity()) : hn::Zero(d);
  }
  const float* row = x + w.first * 16;
  for (int64_t i = 0; i < w.rows; ++i, row += w.row_step * 16) {
    const float* pixel = row;
    // Sums of at most kRun terms are added to the total: the rounding error of a global mean grows with the root of its
    // size only.
    for (int64_t j = 0; j < w.columns; j += kRun) {
      const int64_t run = w.columns - j < kRun ? w.columns - j : kRun;
      V part[kVectors];
      for (int v = 0; v < kVectors; ++v) part[v] = kMax ? acc[v] : hn::Zero(d);
      for (int64_t k = 0; k < run; ++k, pixel += w.column_step * 16) {
        HWY_UNROLL(4)
        for (int v = 0; v < kVectors; ++v) {
          const V p = hn::Load(d, pixel + v * kLanes);
          part[v] = kMax ? larger(part[v], p) : hn::Add(part[v], p);
        }
      }
      for (int v = 0; v < kVectors; ++v) acc[v] = kMax ? part[v] : hn::Add(acc[v], part[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    if (!kMax) acc[v] = hn::Mul(acc[v], hn::Set(d, w.scale));
    hn::Store(acc[v], d, y + v * kLanes);
  }
}

}  // namespace

void pool_windows(bool max, const float* x, const PoolWindow* windows, int64_t count, float* y) {
  if (max) {
    for (int64_t i = 0; i < count; ++i) reduce<true>(x, windows[i], y + i * 16);
  } else {
    for (int64_t i = 0; i < count; ++i) reduce<false>(x, windows[i], y + i * 16);
  }
}

}  // namespace epona::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {
HWY_EXPORT(pool_windows);

namespace {

constexpr double kNsPerLoad = 0.6;  // of 16 floats

void run(const Pooling& p, bool max, bool include_pad, const float* x, float* y, ThreadPool& pool) {
  const double ns = kNsPerLoad * p.kernel_h * p.kernel_w * static_cast<double>(p.out_w);
  pool.parallel_for(p.planes * p.out_h, ns, [&](int64_t begin, int64_t end) {
    constexpr int64_t kBatch = 64;
    PoolWindow windows[kBatch];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / p.out_h, row = i % p.out_h;
      const float* from = x + plane * p.in_h * p.in_w * 16;
      const PoolSpan rows(row, p.stride_h, p.kernel_h, p.dilation_h, p.pad_top, p.pad_bottom, p.in_h);
      for (int64_t first = 0; first < p.out_w; first += kBatch) {
        const int64_t count = std::min(kBatch, p.out_w - first);
        for (int64_t j = 0; j < count; ++j) {
          const PoolSpan columns(first + j, p.stride_w, p.kernel_w, p.dilation_w, p.pad_left, p.pad_right, p.in_w);
          const int64_t divisor = include_pad ? rows.covered * columns.covered : rows.count * columns.count;
          windows[j] = {rows.begin * p.in_w + columns.begin,
                        columns.count > 0 ? rows.count : 0,
                        columns.count,
                        p.dilation_h * p.in_w,
                        p.dilation_w,
                        divisor > 0 ? 1.0f / static_cast<float>(divisor) : 0.0f};
        }
        HWY_DYNAMIC_DISPATCH(pool_windows)(max, from, windows, count, y + (i * p.out_w + first) * 16);
      }
    }
  });
}

}  // namespace

void max_pool_nchwc(const Pooling& pooling, const float* x, float* y, ThreadPool& pool) {
  run(pooling, true, false, x, y, pool);
}

void average_pool_nchwc(const Pooling& pooling, bool include_pad, const float* x, float* y, ThreadPool& pool) {
  run(pooling, false, include_pad, x, y, pool);
}

void global_pool_nchwc(GlobalPool kind, int64_t planes, int64_t pixels, const float* x, float* y, ThreadPool& pool) {
  const PoolWindow window{0, 1, pixels, 0, 1, pixels > 0 ? 1.0f / static_cast<float>(pixels) : 0.0f};
  pool.parallel_for(planes, kNsPerLoad * static_cast<double>(pixels), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      HWY_DYNAMIC_DISPATCH(pool_windows)(kind == GlobalPool::max, x + i * pixels * 16, &window, 1, y + i * 16);
    }
  });
}

}  // namespace epona
#endif
