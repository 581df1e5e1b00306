#pragma once
#include <cstdint>

#include "kernels/activation.h"

namespace epona {

/// What a tile starts from and where it ends: the same for all kinds of tiles.
struct TileOutput {
  const float* bias = nullptr;      ///< [blocks * 16]; null: zero
  bool resume = false;              ///< start from what y holds instead of the bias
  const float* residual = nullptr;  ///< addressed like y; may be null
  float* y = nullptr;               ///< first pixel of the first block; pixels are 16 floats apart
  int64_t block_stride = 0;         ///< floats between the output blocks
  Activation activation;
  bool residual_last = false;  ///< add the residual after the activation
};

/// One filter position: where each pixel of the tile reads, in floats from ConvTile::x; negative: padding.
struct ConvTap {
  const int64_t* offsets;
  int64_t index;  ///< position in the filter: kh * kernel_w + kw
};

/// A tile of the direct convolution: `pixels` neighbouring outputs times `blocks` blocks of 16 channels, summed over all
/// input channels and taps while the sums stay in registers.
struct ConvTile {
  const float* x = nullptr;  ///< first input block
  int64_t x_block_stride = 0;
  int64_t in_channels = 0;
  const ConvTap* taps = nullptr;
  int tap_count = 0;         ///< taps to visit
  int filter_taps = 0;       ///< taps of the whole filter, which the weights hold
  const float* w = nullptr;  ///< [in block][filter tap][channel of the block][blocks * 16]
  /// Memory that is read next: each product of the sum fetches one cache line and moves on by prefetch_step floats.
  const float* prefetch = nullptr;
  int64_t prefetch_step = 0;
  TileOutput out;

  /// Lets the i-th of the tiles that share the `weights` floats at w fetch a part of the as many that follow them.
  void prefetch_next(int64_t i, int64_t weights) {
    const int64_t at = i * in_channels * tap_count * kLine;
    prefetch_step = at < weights ? kLine : 0;
    prefetch = at < weights ? w + weights + at : w;
  }
  static constexpr int64_t kLine = 16;
};

/// The same from an image in planes (NCHW, with its padding in place): every product of the sum has an offset of its own.
struct StemTile {
  const float* x = nullptr;          ///< what the first pixel reads at offset 0
  int64_t pixel_stride = 0;          ///< floats between the inputs of neighbouring pixels
  const int64_t* offsets = nullptr;  ///< [depth]
  int64_t depth = 0;
  const float* w = nullptr;  ///< [depth][blocks * 16]
  TileOutput out;
};

/// The tile kernels of the active instruction set.
struct ConvTileKernels {
  static constexpr int kMaxBlocks = 2, kMaxPixels = 14;
  int max_blocks;                  ///< largest `blocks`
  int max_pixels[kMaxBlocks + 1];  ///< for a number of blocks: the most pixels whose sums fit in registers
  void (*conv[kMaxBlocks + 1][kMaxPixels + 1])(const ConvTile&);
  void (*stem[kMaxBlocks + 1][kMaxPixels + 1])(const StemTile&);
};
const ConvTileKernels& conv_tile_kernels();

}  // namespace epona
