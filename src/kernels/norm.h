#pragma once
#include <cstdint>

#include "base/thread_pool.h"

namespace epona {

/// y = (x - mean) / sqrt(variance + epsilon) * scale + bias over each row of `size` elements, where x may be a sum.
struct LayerNorm {
  int64_t rows = 0, size = 0;
  float epsilon = 1e-5f;
  bool rms = false;                      ///< no mean: y = x / sqrt(mean(x^2) + epsilon) * scale + bias
  const float* scale = nullptr;          ///< [size]; null: 1
  const float* bias = nullptr;           ///< [size]; null: 0
  const float* residual = nullptr;       ///< [rows, size], added to x first; null: none
  int64_t residual_rows = 0;             ///< rows of the residual, repeated; 0: as many as x
  const float* residual_bias = nullptr;  ///< [size], added to x as well
  float* sum_out = nullptr;              ///< [rows, size]: the sum; may be x or the residual itself
  float* mean_out = nullptr;             ///< [rows]
  float* inv_std_out = nullptr;          ///< [rows]
};

/// y may be x or the residual.
void layer_norm(const LayerNorm& n, const float* x, float* y, ThreadPool& pool);

/// Group normalisation of [batch, channels, spatial]: each group of channels/groups channels has its own mean and
/// variance. groups == channels is instance normalisation.
struct GroupNorm {
  int64_t batch = 0, channels = 0, spatial = 0, groups = 1;
  float epsilon = 1e-5f;
  const float* scale = nullptr;  ///< [channels]; null: 1
  const float* bias = nullptr;   ///< [channels]; null: 0
};

void group_norm(const GroupNorm& n, const float* x, float* y, ThreadPool& pool);

}  // namespace epona
