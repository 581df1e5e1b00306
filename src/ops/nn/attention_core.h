#pragma once
#include <limits>

#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "kernels/attention.h"

namespace epona {

/// A tensor seen as {batch, heads, rows, columns}: strides in elements, columns contiguous.
template <class T>
struct Heads {
  T* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;
  T* at(int64_t b, int64_t h, int64_t i) const { return data + b * batch + h * head + i * row; }
};

/// Views of the two layouts in use: {batch, heads, rows, columns} and {batch, rows, heads * columns}.
template <class T>
Heads<T> head_major(T* data, int64_t heads, int64_t rows, int64_t columns) {
  return {data, heads * rows * columns, rows * columns, columns};
}
template <class T>
Heads<T> row_major(T* data, int64_t heads, int64_t rows, int64_t columns) {
  return {data, heads * rows * columns, columns, heads * columns};
}

/// What decides how much scratch memory an attention needs.
struct AttentionSizes {
  int64_t batch, q_heads, kv_heads, q_len, kv_len, head, v_head;
};

/// Y = softmax(scale * Q K^T, capped, plus bias, masked) V, with every KV head shared by q_heads / kv_heads query
/// heads.
template <class T>
struct AttentionCore {
  int64_t batch, q_heads, kv_heads, q_len, kv_len, head_size, v_head_size;
  Heads<const T> q, k, v;
  Heads<T> y;
  T scale = 1, softcap = 0;  ///< softcap: s -> cap * tanh(s / cap); 0 for none

  /// Added to the scores: bias.at(b, h, i)[key * bias_step]. Keys from bias_len on count as masked.
  Heads<const T> bias = {};
  int64_t bias_step = 1;
  int64_t bias_len = std::numeric_limits<int64_t>::max();
  Heads<const T> mask = {};  ///< a second bias
  /// The keys that query i of batch entry b may see; the rest is masked.
  FunctionRef<KeyRange(int64_t b, int64_t i)> visible;
  /// Per head: exp(sink) is added to the softmax's denominator. `smooth` is a sink of 0 for every head.
  const T* sink = nullptr;
  bool smooth = false;
  /// A copy {batch, q_heads, q_len, kv_len} of the scores 0: raw, 1: capped, 2: masked, 3: after the softmax.
  T* qk = nullptr;
  int qk_mode = 0;

  /// A row whose keys are all masked gives zeros. `scratch` holds scratch_size() elements, 64-byte aligned. In float the
  /// vector kernel does it, unless a copy of the scores is wanted.
  void run(T* scratch, ThreadPool& pool) const;
  static int64_t scratch_size(const AttentionSizes& sizes, int threads);

 private:
  static constexpr int64_t kTasks = 64;  // rows in work at once
  void row(int64_t b, int64_t h, int64_t i, T* scores) const;
  void run_vectors(T* scratch, ThreadPool& pool) const;
};

/// Past and new rows one behind the other in `present`, {batch, heads, past + rows, columns}, of which a view is given.
/// Without a past and without `present`: the new rows where they are.
template <class T>
Heads<const T> join_cache(Heads<const T> fresh, int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                          const T* past, int64_t past_rows, T* present, ThreadPool& pool);

}  // namespace epona
