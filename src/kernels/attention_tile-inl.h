// Small matrix products and softmax steps of attention. Include inside a foreach_target file.
#if defined(EPONA_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef EPONA_KERNELS_ATTENTION_TILE_INL_H_
#undef EPONA_KERNELS_ATTENTION_TILE_INL_H_
#else
#define EPONA_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <cmath>

#include "kernels/attention.h"
#include "kernels/math-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using AttTag = hn::ScalableTag<float>;
using AttVec = hn::Vec<AttTag>;

// Rows and columns of a product held in registers.
#if HWY_TARGET == HWY_AVX3
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 6;
#endif
constexpr int64_t kTileCols = 2 * static_cast<int64_t>(hn::MaxLanes(AttTag()));

/// c = a b, or c += a b: `rows` rows of a (k long, lda apart), kTileCols columns of b.
template <int rows, bool add>
HWY_INLINE void product_tile(int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                             int64_t ldc) {
  const AttTag d;
  constexpr int64_t kLanes = kTileCols / 2;
  AttVec acc[rows][2];
  for (int r = 0; r < rows; ++r) {
    acc[r][0] = add ? hn::LoadU(d, c + r * ldc) : hn::Zero(d);
    acc[r][1] = add ? hn::LoadU(d, c + r * ldc + kLanes) : hn::Zero(d);
  }
  for (int64_t i = 0; i < k; ++i, b += ldb) {
    const AttVec b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + kLanes);
    for (int r = 0; r < rows; ++r) {
      const AttVec x = hn::Set(d, a[r * lda + i]);
      acc[r][0] = hn::MulAdd(x, b0, acc[r][0]);
      acc[r][1] = hn::MulAdd(x, b1, acc[r][1]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    hn::StoreU(acc[r][0], d, c + r * ldc);
    hn::StoreU(acc[r][1], d, c + r * ldc + kLanes);
  }
}

template <bool add>
HWY_INLINE void product_rows(int64_t rows, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                             float* c, int64_t ldc) {
  while (rows > 0) {
    switch (rows) {
#if HWY_TARGET == HWY_AVX3
      case 7:
        product_tile<7, add>(k, a, lda, b, ldb, c, ldc);
        return;
      case 6:
        product_tile<6, add>(k, a, lda, b, ldb, c, ldc);
        return;
#endif
      case 5:
        product_tile<5, add>(k, a, lda, b, ldb, c, ldc);
        return;
      case 4:
        product_tile<4, add>(k, a, lda, b, ldb, c, ldc);
        return;
      case 3:
        product_tile<3, add>(k, a, lda, b, ldb, c, ldc);
        return;
      case 2:
        product_tile<2, add>(k, a, lda, b, ldb, c, ldc);
        return;
      case 1:
        product_tile<1, add>(k, a, lda, b, ldb, c, ldc);
        return;
      default:
        break;
    }
    product_tile<kTileRows, add>(k, a, lda, b, ldb, c, ldc);
    rows -= kTileRows;
    a += kTileRows * lda;
    c += kTileRows * ldc;
  }
}

/// State of a row's softmax over the keys seen so far.
struct RowState {
  float max, sum;
};

inline KeyRange visible_keys(const AttentionCall& a, int64_t b, int64_t i) {
  if (!a.visible) return {0, a.kv_len};
  KeyRange range = (*a.visible)(b, i);
  range.last = HWY_MIN(range.last, a.kv_len);
  range.first = HWY_MAX(range.first, int64_t{0});
  return range;
}

/// A row of a bias: `row` by key, or `same` for all keys.
struct BiasRow {
  const float* row = nullptr;
  AttVec same;

  HWY_INLINE BiasRow(const AttentionBias& bias, int64_t b, int64_t h, int64_t i, int64_t key)
      : same(hn::Zero(AttTag())) {
    if (!bias.data) return;
    const float* at = bias.data + b * bias.batch + h * bias.head + i * bias.row + key * bias.col;
    if (bias.col == 0)
      same = hn::Set(AttTag(), *at);
    else
      row = at;
  }
  /// A score of +infinity or NaN under a bias of -infinity is out as well.
  template <class P>
  HWY_INLINE AttVec apply(AttVec score, int64_t j, P part) const {
    const AttTag d;
    const AttVec low = hn::Neg(hn::Inf(d)), add = row ? load(d, row + j, part) : same;
    return hn::IfThenElse(hn::Eq(add, low), low, hn::Add(score, add));
  }
};

/// scores[j] for j in [first, end), the keys from `key` on: scaled, capped, biased; gives their maximum.
HWY_INLINE float finish_scores(const AttentionCall& a, float* scores, int64_t first, int64_t end, int64_t b, int64_t h,
                               int64_t i, int64_t key) {
  const AttTag d;
  const AttVec scale = hn::Set(d, a.softcap != 0 ? a.scale / a.softcap : a.scale), cap = hn::Set(d, a.softcap);
  const AttVec low = hn::Neg(hn::Inf(d));
  const BiasRow bias(a.bias, b, h, i, key), mask(a.mask, b, h, i, key);
  const bool biased = a.bias.data != nullptr, masked = a.mask.data != nullptr;
  AttVec max = low;
  for_vectors(d, end - first, [&](int64_t k, auto part) HWY_ATTR {
    const int64_t j = first + k;
    AttVec s = hn::Mul(load(d, scores + j, part), scale);
    if (a.softcap != 0) s = hn::Mul(cap, tanh(d, s));
    if (biased) s = bias.apply(s, j, part);
    if (masked) s = mask.apply(s, j, part);
    store(s, d, scores + j, part);
    max = hn::Max(max, load_or(low, d, scores + j, part));
  });
  return hn::ReduceMax(d, max);
}

HWY_INLINE RowState start_row(const AttentionCall& a, int64_t h) {
  if (a.sink) return {a.sink[h], 1};
  if (a.smooth) return {0, 1};
  return {-HUGE_VALF, 0};
}

/// Turns scores[first, end) into weights relative to the running maximum; gives the factor for what was summed before.
HWY_INLINE float softmax_step(float* scores, int64_t first, int64_t end, float max, RowState& row) {
  const AttTag d;
  const float top = max > row.max ? max : row.max;
  // Nothing but -infinity so far: the weights are 0 unless a score is NaN.
  const AttVec m = hn::Set(d, top == -HUGE_VALF ? 0.0f : top);
  AttVec sum = hn::Zero(d);
  for_vectors(d, end - first, [&](int64_t k, auto part) HWY_ATTR {
    const AttVec e = exp_nonpos(d, hn::Sub(load(d, scores + first + k, part), m));
    store(e, d, scores + first + k, part);
    sum = hn::Add(sum, keep(e, d, part));
  });
  const float factor = row.max == top ? 1.0f : std::exp(row.max - top);
  row.sum = row.sum * factor + hn::ReduceSum(d, sum);
  row.max = top;
  return factor;
}

HWY_INLINE void scale_row(float* x, int64_t n, float factor) {
  const AttTag d;
  const AttVec f = hn::Set(d, factor);
  for_vectors(d, n, [&](int64_t i, auto part) HWY_ATTR { store(hn::Mul(load(d, x + i, part), f), d, x + i, part); });
}

/// out = x / sum
HWY_INLINE void finish_row(const AttentionCall& a, const float* x, float sum, float* out) {
  const AttTag d;
  const bool nothing = sum == 0 && a.zero_when_masked;
  const AttVec f = hn::Set(d, nothing ? 0.0f : 1.0f / sum);
  for_vectors(d, a.v_dim,
              [&](int64_t i, auto part) HWY_ATTR { store(hn::Mul(load(d, x + i, part), f), d, out + i, part); });
}

}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#endif  // include guard
