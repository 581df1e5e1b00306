#pragma once
#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "base/thread_pool.h"

namespace epona {

/// Queries, keys or values where they lie: element (b, h, s, i) is data[b batch + h head + s seq + i].
struct AttentionInput {
  const float* data = nullptr;
  int64_t batch = 0, head = 0, seq = 0;
};

/// The keys [first, last) that a query may see.
struct KeyRange {
  int64_t first, last;
};

/// Added to the scores: element (b, h, i, j) at data[b batch + h head + i row + j col]; strides of 0 repeat.
struct AttentionBias {
  const float* data = nullptr;
  int64_t batch = 0, head = 0, row = 0, col = 1;
};

/// out = softmax(scale Q K^T + mask) V for every batch entry and head.
struct AttentionCall {
  int64_t batch = 0;
  int64_t heads = 0, kv_heads = 0;  ///< heads is a multiple of kv_heads: neighbouring heads share keys and values
  int64_t q_len = 0, kv_len = 0;
  int64_t dim = 0, v_dim = 0;
  AttentionInput q, k, v;
  float* out = nullptr;
  int64_t out_batch = 0, out_head = 0, out_seq = 0;  ///< like the strides of AttentionInput

  float scale = 1;
  float softcap = 0;         ///< not 0: scores become softcap tanh(score / softcap) before the bias
  AttentionBias bias, mask;  ///< -infinity takes a key out
  /// The keys that query i of batch entry b may see; null: all.
  const FunctionRef<KeyRange(int64_t b, int64_t i)>* visible = nullptr;
  /// Per head: exp(sink) is added to the softmax's denominator. `smooth` is a sink of 0 for every head.
  const float* sink = nullptr;
  bool smooth = false;
  /// What a query gets that may see no key: 0, or else NaN, which is what the formula gives.
  bool zero_when_masked = true;
};

/// Bytes of scratch that attention() needs on a pool of that many threads; pointers do not matter.
size_t attention_workspace(const AttentionCall& a, int threads);

/// `workspace` must be 64-byte aligned. `out` may not overlap the inputs.
void attention(const AttentionCall& a, void* workspace, ThreadPool& pool);

}  // namespace epona
