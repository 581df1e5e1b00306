#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/nn/attention_core.h"
#include "ops/nn/rows.h"

namespace epona {

template <class T>
void AttentionCore<T>::row(int64_t b, int64_t h, int64_t i, T* scores) const {
  constexpr T kMasked = -std::numeric_limits<T>::infinity();
  const int64_t kv_head = h / (q_heads / kv_heads);
  KeyRange range = visible(b, i);
  range.first = std::clamp<int64_t>(range.first, 0, kv_len);
  range.last = std::clamp<int64_t>(range.last, range.first, kv_len);
  if (bias.data) range.last = std::max(range.first, std::min(range.last, bias_len));
  // The copy shows masked keys too, so it needs all scores.
  const KeyRange all = qk ? KeyRange{0, kv_len} : range;
  T* copy = qk ? qk + ((b * q_heads + h) * q_len + i) * kv_len : nullptr;
  auto show = [&](int mode) {
    if (copy && qk_mode == mode) std::copy_n(scores, kv_len, copy);
  };

  const T* query = q.at(b, h, i);
  for (int64_t j = all.first; j < all.last; ++j) scores[j] = scale * row_dot(query, k.at(b, kv_head, j), head_size);
  show(0);
  if (softcap != 0)
    for (int64_t j = all.first; j < all.last; ++j) scores[j] = softcap * std::tanh(scores[j] / softcap);
  show(1);
  for (auto [view, step] : {std::pair{&bias, bias_step}, std::pair{&mask, int64_t{1}}}) {
    if (!view->data) continue;
    const T* add = view->at(b, h, i);
    // Not a sum with -inf: a score of +inf must stay masked too.
    for (int64_t j = range.first; j < range.last; ++j) {
      const T a = add[j * step];
      scores[j] = a == kMasked ? kMasked : scores[j] + a;
    }
  }
  std::fill(scores + all.first, scores + range.first, kMasked);
  std::fill(scores + range.last, scores + all.last, kMasked);
  show(2);

  T best = kMasked;
  for (int64_t j = range.first; j < range.last; ++j)
    best = scores[j] > best || scores[j] != scores[j] ? scores[j] : best;
  T* out = y.at(b, h, i);
  std::fill_n(out, v_head_size, T(0));
  if (best == kMasked) {
    std::fill(scores + all.first, scores + all.last, T(0));
    show(3);
    return;
  }
  T sum = 0;
  if (sink || smooth) {
    const T level = sink ? sink[h] : T(0);
    best = std::max(best, level);
    sum = std::exp(level - best);
  }
  for (int64_t j = all.first; j < all.last; ++j) scores[j] = std::exp(scores[j] - best);
  sum += row_sum(scores + range.first, range.last - range.first);
  const T inverse = T(1) / sum;
  for (int64_t j = all.first; j < all.last; ++j) scores[j] *= inverse;
  show(3);
  for (int64_t j = range.first; j < range.last; ++j) {
    const T weight = scores[j];
    if (weight == 0) continue;
    const T* value = v.at(b, kv_head, j);
    for (int64_t d = 0; d < v_head_size; ++d) out[d] += weight * value[d];
  }
}

namespace {

AttentionInput input(const Heads<const float>& view) { return {view.data, view.batch, view.head, view.row}; }

AttentionBias bias_of(const Heads<const float>& view, int64_t step) {
  return {view.data, view.batch, view.head, view.row, step};
}

}  // namespace

template <class T>
void AttentionCore<T>::run_vectors([[maybe_unused]] T* scratch, [[maybe_unused]] ThreadPool& pool) const {
  if constexpr (std::is_same_v<T, float>) {
    // Keys behind the end of the bias are masked.
    const auto within_bias = [&](int64_t b, int64_t i) {
      KeyRange range = visible(b, i);
      if (bias.data) range.last = std::min(range.last, bias_len);
      return range;
    };
    const FunctionRef<KeyRange(int64_t, int64_t)> keys = within_bias;
    const AttentionCall a{.batch = batch,
                          .heads = q_heads,
                          .kv_heads = kv_heads,
                          .q_len = q_len,
                          .kv_len = kv_len,
                          .dim = head_size,
                          .v_dim = v_head_size,
                          .q = input(q),
                          .k = input(k),
                          .v = input(v),
                          .out = y.data,
                          .out_batch = y.batch,
                          .out_head = y.head,
                          .out_seq = y.row,
                          .scale = scale,
                          .softcap = softcap,
                          .bias = bias_of(bias, bias_step),
                          .mask = bias_of(mask, 1),
                          .visible = &keys,
                          .sink = sink,
                          .smooth = smooth,
                          .zero_when_masked = true};
    attention(a, scratch, pool);
  }
}

template <class T>
int64_t AttentionCore<T>::scratch_size(const AttentionSizes& s, int threads) {
  const int64_t scalar = kTasks * s.kv_len;
  if constexpr (!std::is_same_v<T, float>) return scalar;
  const AttentionCall a{.batch = s.batch,
                        .heads = s.q_heads,
                        .kv_heads = s.kv_heads,
                        .q_len = s.q_len,
                        .kv_len = s.kv_len,
                        .dim = s.head,
                        .v_dim = s.v_head,
                        .q = {},
                        .k = {},
                        .v = {},
                        .bias = {},
                        .mask = {}};
  return std::max(scalar, static_cast<int64_t>(attention_workspace(a, threads) / sizeof(float)));
}

template <class T>
void AttentionCore<T>::run(T* scratch, ThreadPool& pool) const {
  if (std::is_same_v<T, float> && !qk) return run_vectors(scratch, pool);
  const int64_t rows = batch * q_heads * q_len;
  double cost = 0.5 * static_cast<double>(kv_len * (head_size + v_head_size)) + 4.0 * static_cast<double>(kv_len);
  // Tasks, not single rows: each has its own piece of scratch.
  const int64_t tasks = std::min(rows, kTasks);
  if (tasks == 0) return;
  pool.parallel_for(tasks, cost * static_cast<double>(rows) / static_cast<double>(tasks),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t task = begin; task < end; ++task)
                        for (int64_t r = rows * task / tasks; r < rows * (task + 1) / tasks; ++r)
                          row(r / q_len / q_heads, r / q_len % q_heads, r % q_len, scratch + task * kv_len);
                    });
}

template struct AttentionCore<float>;
template struct AttentionCore<double>;

template <class T>
Heads<const T> join_cache(Heads<const T> fresh, int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                          const T* past, int64_t past_rows, T* present, ThreadPool& pool) {
  if (!present) return fresh;
  const int64_t total = past_rows + rows;
  pool.parallel_for(batch * heads, 0.2 * static_cast<double>(total * columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* to = present + i * total * columns;
      if (past_rows > 0) std::copy_n(past + i * past_rows * columns, past_rows * columns, to);
      for (int64_t r = 0; r < rows; ++r)
        std::copy_n(fresh.at(i / heads, i % heads, r), columns, to + (past_rows + r) * columns);
    }
  });
  return head_major<const T>(present, heads, total, columns);
}
template Heads<const float> join_cache(Heads<const float>, int64_t, int64_t, int64_t, int64_t, const float*, int64_t,
                                       float*, ThreadPool&);
template Heads<const double> join_cache(Heads<const double>, int64_t, int64_t, int64_t, int64_t, const double*, int64_t,
                                        double*, ThreadPool&);

}  // namespace epona
