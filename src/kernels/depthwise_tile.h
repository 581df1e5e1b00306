#pragma once
#include <cstdint>

#include "kernels/conv_tile.h"

namespace epona {

/// Neighbouring outputs of one row and one block of 16 channels of a depthwise convolution.
struct DepthwiseTile {
  const float* x =
      nullptr;  ///< input under the first filter row and column of the first output (may lie in the padding)
  int64_t x_row_stride = 0;                        ///< floats between two filter rows: the dilation is in it
  int rows = 0;                                    ///< filter rows that fall inside the image
  const float* w = nullptr;                        ///< [rows][kernel_w][16]
  int column_begin = 0, column_end = 0;            ///< input columns, relative to x, that lie inside the image
  int kernel_w = 0, stride_w = 0, dilation_w = 0;  ///< read by the general kernel only
  TileOutput out;
};

using DepthwiseTileFn = void (*)(const DepthwiseTile&);

struct DepthwiseKernels {
  static constexpr int kMaxPixels = 8;
  /// [width of the filter 3, 5, 7][stride 1, 2][outputs], undilated.
  DepthwiseTileFn special[3][2][kMaxPixels + 1];
  /// Any width, stride and dilation: [outputs].
  DepthwiseTileFn general[kMaxPixels + 1];
};
const DepthwiseKernels& depthwise_kernels();

}  // namespace epona
