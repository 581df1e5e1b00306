#pragma once
// What the drivers of the int8 convolutions (conv_int8.cc, depthwise_int8.cc) and their SIMD code (conv_int8_tile.cc)
// say to each other.
#include <cstdint>

#include "kernels/conv.h"

namespace epona::int8_detail {

/// Rows of A of a convolution: one for each output pixel, terms in the order (filter row, filter column, channel), in
/// the form that the product's tiles take.
struct Gather {
  const uint8_t* x;      ///< the first channel of the group
  const uint8_t* x_end;  ///< of the whole image: nothing is read from there on
  int64_t pixel_stride;  ///< channels of the whole image
  int64_t channels;
  int kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  ConvImage image;
  bool x_signed;
  int32_t zero;       ///< of the padding, as gathered
  uint8_t* out;       ///< 64 bytes behind the last row may be written
  int64_t out_ld;     ///< bytes
  int32_t* row_sums;  ///< may be null
};

/// Neighbouring outputs of a depthwise convolution in one row of pixels.
struct DepthwiseInt8Row {
  const uint8_t* const* taps;  ///< where the first channel of each tap of the first pixel is
  int64_t step;                ///< bytes from a tap to that of the next pixel
  int64_t pixels, channels;
  int taps_count;
  /// For each block of channels (the last one overlaps the one before), for each pair of taps: the two weights of each
  /// channel side by side, channels in the order of depthwise_order().
  const int16_t* w;
  const int32_t* add;  ///< per block, in that order
  const float* scale;  ///< likewise
  bool x_signed, y_signed;
  int32_t zero, low, high;
  uint8_t* y;
};

struct ConvInt8Kernels {
  void (*gather)(const Gather& g, int64_t row, int64_t rows);
  int depthwise_block;  ///< channels that are computed at once
  /// Channel that element i of a block of `add` and `scale` belongs to.
  void (*depthwise_order)(int* order);
  /// Images of fewer channels than a block have to be padded by the caller.
  void (*depthwise)(const DepthwiseInt8Row& row);
};

const ConvInt8Kernels& conv_int8_kernels();

}  // namespace epona::int8_detail
