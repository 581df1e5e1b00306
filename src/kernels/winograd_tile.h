#pragma once
#include <cstdint>

#include "kernels/conv_tile.h"

namespace epona {

/// One tile of outputs of Winograd's convolution, in one block of 16 channels.
struct WinogradOutput {
  const float* m = nullptr;  ///< [points], point_stride floats apart
  int64_t point_stride = 0;
  int rows = 0, columns = 0;  ///< outputs of the tile that lie inside the image
  int64_t row_stride = 0;     ///< floats between the rows of y and of the residual
  TileOutput out;             ///< block_stride is not read
};

struct WinogradKernels {
  /// One tile of one block of 16 channels: v[point * point_stride + lane] = (B^T d B)[point], where element i of d is at
  /// x + offsets[i], or zero where the offset is negative.
  void (*input)(const float* x, const int64_t* offsets, float* v, int64_t point_stride);
  void (*output)(const WinogradOutput& tile);
  /// Filters [3x3 taps][16 output channels] of one input channel: u[point * point_stride + lane] = (G g G^T)[point].
  void (*filter)(const float* taps, float* u, int64_t point_stride);
};
/// m = 2 or 4.
const WinogradKernels& winograd_kernels(int m);

}  // namespace epona
