#pragma once
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"

namespace epona {

/// Queries, keys or values where they lie: element (b, h, s, i) is data[b batch + h head + s seq + i].
struct AttentionInput {
  const float* data = nullptr;
  int64_t batch = 0, head = 0, seq = 0;
};

/// out = softmax(scale Q K^T + mask) V for every batch entry and head.
struct Attention {
  int64_t batch = 0;
  int64_t heads = 0, kv_heads = 0;  ///< heads is a multiple of kv_heads: neighbouring heads share keys and values
  int64_t q_len = 0, kv_len = 0;
  int64_t dim = 0, v_dim = 0;
  AttentionInput q, k, v;
  float* out = nullptr;
  int64_t out_batch = 0, out_head = 0, out_seq = 0;  ///< like the strides of AttentionInput

  float scale = 1;
  float softcap = 0;  ///< not 0: scores become softcap tanh(score / softcap) before the mask
  bool causal = false;
  /// Keys that come before the first query: query i sees keys up to i + past.
  int64_t past = 0;
  const int64_t* pasts = nullptr;    ///< [batch], instead of `past`
  const int64_t* kv_lens = nullptr;  ///< [batch]: only the first so many keys count
  int64_t window = 0;                ///< not 0: query i sees only the last `window` keys up to i + past
  /// Added to the scores, or, if boolean, false takes the key out: element (b, h, i, j) at the sum of the strides.
  const float* mask = nullptr;
  const bool* bool_mask = nullptr;
  int64_t mask_batch = 0, mask_head = 0, mask_row = 0, mask_col = 0;  ///< 0 where repeated
  /// What a query gets that may see no key at all: 0, or else NaN, which is what the formula gives.
  bool zero_when_masked = false;
};

/// Bytes of scratch that attention() needs on a pool of that many threads; pointers do not matter.
size_t attention_workspace(const Attention& a, int threads);

/// `workspace` must be 64-byte aligned. `out` may not overlap the inputs.
void attention(const Attention& a, void* workspace, ThreadPool& pool);

}  // namespace epona
