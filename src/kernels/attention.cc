#include "kernels/attention.h"

#include <algorithm>

#include "kernels/targets.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"
#include "kernels/attention_tile-inl.h"
#include "kernels/transpose-inl.h"

#ifndef EPONA_KERNELS_ATTENTION_CC_ONCE
#define EPONA_KERNELS_ATTENTION_CC_ONCE
namespace epona {
namespace {

constexpr int64_t kQueryBlock = 24;    // a multiple of the tile rows of every target
constexpr int64_t kKeyBlock = 256;     // a block of scores stays in the first-level cache
constexpr int64_t kDecodeKeys = 64;    // keys that a decode step scores before it reads their values
constexpr int64_t kDecodeSplit = 256;  // fewer keys than that are not shared between threads

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/// Where things lie in the workspace, in floats.
struct Layout {
  int64_t panels = 0;    // of tile columns, per key head
  int64_t padded_v = 0;  // value dim rounded up to tile columns
  bool pack_v = false;
  int64_t keys = 0, values = 0, per_thread = 0;  // sizes

  Layout(const AttentionCall& a, int64_t tile_cols) {
    panels = (a.kv_len + tile_cols - 1) / tile_cols;
    padded_v = round_up(a.v_dim, tile_cols);
    pack_v = padded_v != a.v_dim;
    keys = round_up(a.batch * a.kv_heads * panels * tile_cols * a.dim, 16);
    values = pack_v ? round_up(a.batch * a.kv_heads * a.kv_len * padded_v, 16) : 0;
    per_thread = kQueryBlock * (kKeyBlock + padded_v);
  }
};

/// One query, or a few: reading keys and values once is what counts.
bool is_decode(const AttentionCall& a) { return a.q_len * (a.heads / a.kv_heads) <= 16 && a.q_len <= 4; }

/// Tasks of a decode: each takes a part of the keys of one key head.
struct DecodeLayout {
  int64_t rows, chunks, chunk_keys, record, tasks;

  DecodeLayout(const AttentionCall& a, int threads) {
    rows = a.q_len * (a.heads / a.kv_heads);
    const int64_t units = a.batch * a.kv_heads;
    chunks = std::clamp<int64_t>(2 * threads / std::max<int64_t>(units, 1), 1,
                                 std::max<int64_t>(1, a.kv_len / kDecodeSplit));
    chunk_keys = round_up((a.kv_len + chunks - 1) / chunks, kDecodeKeys);
    record = round_up(rows * (a.v_dim + 2 + kDecodeKeys), 16);  // sums, states, scores
    tasks = units * chunks;
  }
};

}  // namespace
}  // namespace epona
#endif

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace {

int64_t tile_cols() { return kTileCols; }

/// Keys of panels [begin, end) as [panel][dim][tile column], the missing ones 0.
void pack_keys(const AttentionCall& a, float* packed, int64_t begin, int64_t end) {
  const int64_t panels = (a.kv_len + kTileCols - 1) / kTileCols;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t head = unit / panels, first = unit % panels * kTileCols, n = HWY_MIN(kTileCols, a.kv_len - first);
    const float* from = a.k.data + head / a.kv_heads * a.k.batch + head % a.kv_heads * a.k.head + first * a.k.seq;
    float* to = packed + unit * kTileCols * a.dim;
    transpose_words(reinterpret_cast<const uint32_t*>(from), a.k.seq, reinterpret_cast<uint32_t*>(to), kTileCols, n,
                    a.dim);
    for (int64_t i = 0; n < kTileCols && i < a.dim; ++i)
      std::fill(to + i * kTileCols + n, to + (i + 1) * kTileCols, 0.0f);
  }
}

/// Values of key heads [begin, end) with their dim padded by zeros.
void pack_values(const AttentionCall& a, float* packed, int64_t padded, int64_t begin, int64_t end) {
  for (int64_t head = begin; head < end; ++head) {
    const float* from = a.v.data + head / a.kv_heads * a.v.batch + head % a.kv_heads * a.v.head;
    float* to = packed + head * a.kv_len * padded;
    for (int64_t s = 0; s < a.kv_len; ++s, from += a.v.seq, to += padded) {
      std::copy_n(from, a.v_dim, to);
      std::fill(to + a.v_dim, to + padded, 0.0f);
    }
  }
}

/// Queries [first, first + rows) of head h of batch entry b. `scratch` holds scores and sums.
void attend_block(const AttentionCall& a, const Layout& layout, const float* keys, const float* values, int64_t b,
                  int64_t h, int64_t first, int64_t rows, float* scratch) {
  const int64_t kv_head = h / (a.heads / a.kv_heads), unit = b * a.kv_heads + kv_head;
  const float* q = a.q.data + b * a.q.batch + h * a.q.head + first * a.q.seq;
  const float* k = keys + unit * layout.panels * kTileCols * a.dim;
  const float* v = a.v.data + b * a.v.batch + kv_head * a.v.head;
  int64_t v_stride = a.v.seq;
  if (layout.pack_v) {
    v = values + unit * a.kv_len * layout.padded_v;
    v_stride = layout.padded_v;
  }
  float* scores = scratch;
  float* sums = scratch + kQueryBlock * kKeyBlock;
  std::fill_n(sums, rows * layout.padded_v, 0.0f);
  RowState state[kQueryBlock];
  KeyRange visible[kQueryBlock];
  int64_t low = a.kv_len, high = 0;
  for (int64_t r = 0; r < rows; ++r) {
    state[r] = start_row(a, h);
    visible[r] = visible_keys(a, b, first + r);
    low = HWY_MIN(low, visible[r].first);
    high = HWY_MAX(high, visible[r].last);
  }
  for (int64_t at = low / kTileCols * kTileCols; at < high; at += kKeyBlock) {
    const int64_t n = HWY_MIN(kKeyBlock, high - at);
    for (int64_t j = 0; j < n; j += kTileCols)
      product_rows<false>(rows, a.dim, q, a.q.seq, k + (at + j) * a.dim, kTileCols, scores + j, kKeyBlock);
    for (int64_t r = 0; r < rows; ++r) {
      float* row = scores + r * kKeyBlock;
      const int64_t begin = HWY_MAX(visible[r].first - at, int64_t{0}), end = HWY_MIN(visible[r].last - at, n);
      if (begin >= end) {
        std::fill_n(row, n, 0.0f);
        continue;
      }
      const float max = finish_scores(a, row, begin, end, b, h, first + r, at);
      const float factor = softmax_step(row, begin, end, max, state[r]);
      if (factor != 1.0f && at > low) scale_row(sums + r * layout.padded_v, layout.padded_v, factor);
      std::fill(row, row + begin, 0.0f);
      std::fill(row + end, row + n, 0.0f);
    }
    for (int64_t i = 0; i < layout.padded_v; i += kTileCols)
      product_rows<true>(rows, n, scores, kKeyBlock, v + at * v_stride + i, v_stride, sums + i, layout.padded_v);
  }
  for (int64_t r = 0; r < rows; ++r)
    finish_row(a, sums + r * layout.padded_v, state[r].sum,
               a.out + b * a.out_batch + h * a.out_head + (first + r) * a.out_seq);
}

HWY_INLINE float dot(const float* x, const float* y, int64_t n) {
  const AttTag d;
  AttVec sum = hn::Zero(d);
  for_vectors(
      d, n, [&](int64_t i, auto part) HWY_ATTR { sum = hn::MulAdd(load(d, x + i, part), load(d, y + i, part), sum); });
  return hn::ReduceSum(d, sum);
}

/// Dot products of q with four keys.
HWY_INLINE void dot4(const float* q, const float* k, int64_t stride, int64_t n, float* out) {
  const AttTag d;
  AttVec s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for_vectors(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const AttVec x = load(d, q + i, part);
    s0 = hn::MulAdd(x, load(d, k + i, part), s0);
    s1 = hn::MulAdd(x, load(d, k + stride + i, part), s1);
    s2 = hn::MulAdd(x, load(d, k + 2 * stride + i, part), s2);
    s3 = hn::MulAdd(x, load(d, k + 3 * stride + i, part), s3);
  });
  out[0] = hn::ReduceSum(d, s0);
  out[1] = hn::ReduceSum(d, s1);
  out[2] = hn::ReduceSum(d, s2);
  out[3] = hn::ReduceSum(d, s3);
}

/// sums[0..vectors * lanes) += sum over j of weights[j] v[j]
template <int vectors>
HWY_INLINE void add_values(const float* weights, int64_t n, const float* v, int64_t stride, float* sums) {
  const AttTag d;
  constexpr int64_t kLanes = kTileCols / 2;
  AttVec acc[vectors];
  for (int i = 0; i < vectors; ++i) acc[i] = hn::LoadU(d, sums + i * kLanes);
  for (int64_t j = 0; j < n; ++j, v += stride) {
    const AttVec w = hn::Set(d, weights[j]);
    for (int i = 0; i < vectors; ++i) acc[i] = hn::MulAdd(w, hn::LoadU(d, v + i * kLanes), acc[i]);
  }
  for (int i = 0; i < vectors; ++i) hn::StoreU(acc[i], d, sums + i * kLanes);
}

HWY_INLINE void add_all_values(const float* weights, int64_t n, const float* v, int64_t stride, int64_t dim,
                               float* sums) {
  const AttTag d;
  constexpr int64_t kLanes = kTileCols / 2;
  int64_t i = 0;
  for (; i + 8 * kLanes <= dim; i += 8 * kLanes) add_values<8>(weights, n, v + i, stride, sums + i);
  for (; i + 4 * kLanes <= dim; i += 4 * kLanes) add_values<4>(weights, n, v + i, stride, sums + i);
  for (; i + kLanes <= dim; i += kLanes) add_values<1>(weights, n, v + i, stride, sums + i);
  if (i == dim) return;
  const Part part{static_cast<size_t>(dim - i)};
  AttVec acc = load(d, sums + i, part);
  for (int64_t j = 0; j < n; ++j) acc = hn::MulAdd(hn::Set(d, weights[j]), load(d, v + j * stride + i, part), acc);
  store(acc, d, sums + i, part);
}

/// One task of a decode: keys [begin, end) of one key head, for all the queries that share it.
void decode_part(const AttentionCall& a, int64_t unit, int64_t begin, int64_t end, float* record) {
  const int64_t group = a.heads / a.kv_heads, rows = group * a.q_len, b = unit / a.kv_heads,
                kv_head = unit % a.kv_heads;
  const float* k = a.k.data + b * a.k.batch + kv_head * a.k.head;
  const float* v = a.v.data + b * a.v.batch + kv_head * a.v.head;
  auto* state = reinterpret_cast<RowState*>(record + rows * a.v_dim);
  float* scores = record + rows * (a.v_dim + 2);
  std::fill_n(record, rows * a.v_dim, 0.0f);
  // A sink counts once: in the part that begins with key 0.
  for (int64_t r = 0; r < rows; ++r)
    state[r] = begin == 0 ? start_row(a, kv_head * group + r / a.q_len) : RowState{-HUGE_VALF, 0};
  for (int64_t at = begin; at < end; at += kDecodeKeys) {
    const int64_t n = HWY_MIN(kDecodeKeys, end - at);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t h = kv_head * group + r / a.q_len, i = r % a.q_len;
      const KeyRange visible = visible_keys(a, b, i);
      const int64_t from = HWY_MAX(visible.first - at, int64_t{0}), to = HWY_MIN(visible.last - at, n);
      if (from >= to) continue;
      const float* q = a.q.data + b * a.q.batch + h * a.q.head + i * a.q.seq;
      float* row = scores + r * kDecodeKeys;
      int64_t j = from;
      for (; j + 4 <= to; j += 4) dot4(q, k + (at + j) * a.k.seq, a.k.seq, a.dim, row + j);
      for (; j < to; ++j) row[j] = dot(q, k + (at + j) * a.k.seq, a.dim);
      const float max = finish_scores(a, row, from, to, b, h, i, at);
      const float factor = softmax_step(row, from, to, max, state[r]);
      float* sums = record + r * a.v_dim;
      if (factor != 1.0f) scale_row(sums, a.v_dim, factor);
      add_all_values(row + from, to - from, v + (at + from) * a.v.seq, a.v.seq, a.v_dim, sums);
    }
  }
}

/// Joins the parts of one key head and writes its rows.
void decode_merge(const AttentionCall& a, int64_t unit, float* records, int64_t stride, int64_t parts) {
  const AttTag d;
  const int64_t group = a.heads / a.kv_heads, rows = group * a.q_len, b = unit / a.kv_heads,
                kv_head = unit % a.kv_heads;
  for (int64_t r = 0; r < rows; ++r) {
    RowState& total = reinterpret_cast<RowState*>(records + rows * a.v_dim)[r];
    float* sums = records + r * a.v_dim;
    for (int64_t p = 1; p < parts; ++p) {
      const float* record = records + p * stride;
      const RowState other = reinterpret_cast<const RowState*>(record + rows * a.v_dim)[r];
      const float top = HWY_MAX(total.max, other.max);
      const float mine = total.max == top ? 1.0f : std::exp(total.max - top);
      const float theirs = other.max == top ? 1.0f : std::exp(other.max - top);
      const AttVec x = hn::Set(d, mine), y = hn::Set(d, theirs);
      const float* from = record + r * a.v_dim;
      for_vectors(d, a.v_dim, [&](int64_t i, auto part) HWY_ATTR {
        store(hn::MulAdd(load(d, from + i, part), y, hn::Mul(load(d, sums + i, part), x)), d, sums + i, part);
      });
      total = {top, total.sum * mine + other.sum * theirs};
    }
    const int64_t h = kv_head * group + r / a.q_len, i = r % a.q_len;
    finish_row(a, sums, total.sum, a.out + b * a.out_batch + h * a.out_head + i * a.out_seq);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {

HWY_EXPORT(tile_cols);
HWY_EXPORT(pack_keys);
HWY_EXPORT(pack_values);
HWY_EXPORT(attend_block);
HWY_EXPORT(decode_part);
HWY_EXPORT(decode_merge);

size_t attention_workspace(const AttentionCall& a, int threads) {
  int64_t floats;
  if (is_decode(a)) {
    const DecodeLayout layout(a, threads);
    floats = layout.tasks * layout.record;
  } else {
    const Layout layout(a, HWY_DYNAMIC_DISPATCH(tile_cols)());
    floats = layout.keys + layout.values + threads * layout.per_thread;
  }
  return static_cast<size_t>(floats) * sizeof(float);
}

namespace {

void decode(const AttentionCall& a, float* workspace, ThreadPool& pool) {
  const DecodeLayout layout(a, pool.threads());
  const auto part = HWY_DYNAMIC_POINTER(decode_part);
  const auto merge = HWY_DYNAMIC_POINTER(decode_merge);
  const double ns = 0.12 * static_cast<double>(layout.chunk_keys * layout.rows * (a.dim + a.v_dim));
  pool.parallel_for(layout.tasks, ns, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % layout.chunks * layout.chunk_keys;
      float* record = workspace + task * layout.record;
      part(a, task / layout.chunks, first, std::min(first + layout.chunk_keys, a.kv_len), record);
      if (layout.chunks == 1) merge(a, task, record, 0, 1);
    }
  });
  if (layout.chunks == 1) return;
  for (int64_t unit = 0; unit < a.batch * a.kv_heads; ++unit)
    merge(a, unit, workspace + unit * layout.chunks * layout.record, layout.record, layout.chunks);
}

}  // namespace

void attention(const AttentionCall& a, void* workspace, ThreadPool& pool) {
  if (a.batch * a.heads * a.q_len * a.v_dim == 0) return;
  auto* floats = static_cast<float*>(workspace);
  if (is_decode(a)) return decode(a, floats, pool);
  const int64_t cols = HWY_DYNAMIC_DISPATCH(tile_cols)();
  const Layout layout(a, cols);
  float *keys = floats, *values = keys + layout.keys, *scratch = values + layout.values;
  const auto pack = HWY_DYNAMIC_POINTER(pack_keys);
  pool.parallel_for(a.batch * a.kv_heads * layout.panels, 0.3 * static_cast<double>(cols * a.dim),
                    [&](int64_t begin, int64_t end) { pack(a, keys, begin, end); });
  if (layout.pack_v) {
    const auto pack_v = HWY_DYNAMIC_POINTER(pack_values);
    pool.parallel_for(a.batch * a.kv_heads, 0.2 * static_cast<double>(a.kv_len * a.v_dim),
                      [&](int64_t begin, int64_t end) { pack_v(a, values, layout.padded_v, begin, end); });
  }
  const auto block = HWY_DYNAMIC_POINTER(attend_block);
  const int64_t blocks = (a.q_len + kQueryBlock - 1) / kQueryBlock;
  const double ns = 0.02 * static_cast<double>(kQueryBlock * a.kv_len * (a.dim + a.v_dim)) + 1000;
  parallel_items(pool, a.batch * a.heads * blocks, ns, [&](int slot, int64_t item) {
    // Blocks of even size: 128 queries are 22 + 21 + 21 + ... rather than 24 + ... + 8.
    const int64_t head = item / blocks, at = item % blocks;
    const int64_t first = a.q_len * at / blocks, rows = a.q_len * (at + 1) / blocks - first;
    block(a, layout, keys, values, head / a.heads, head % a.heads, first, rows, scratch + slot * layout.per_thread);
  });
}

}  // namespace epona
#endif  // HWY_ONCE
