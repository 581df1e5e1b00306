#include <algorithm>

#include "base/error.h"
#include "kernels/conv.h"
#include "kernels/conv_tile.h"
#include "kernels/filter_pack.h"
#include "kernels/parallel.h"

namespace epona {
namespace {
constexpr double kMacsPerNs = 32;
constexpr int64_t kStripBytes = 64 << 10;  // padded input of one strip: stays in L2 with room for the outputs
}  // namespace

/// A strip: some output rows whose input is copied, with its padding, into a buffer of its own.
struct ConvStem::Strips {
  int64_t width, rows_out, rows_in, per_image;

  Strips(const ConvParams& p, const ConvImage& image, int threads) {
    width = (image.out_w - 1) * p.stride_w + static_cast<int64_t>(p.kernel_w - 1) * p.dilation_w + 1;
    const int64_t extra = static_cast<int64_t>(p.kernel_h - 1) * p.dilation_h + 1;
    const int64_t fit = kStripBytes / std::max<int64_t>(1, p.in_channels * width * 4);
    rows_out = std::clamp<int64_t>((fit - extra) / p.stride_h + 1, 1, image.out_h);
    if (threads > 1) rows_out = std::clamp<int64_t>(image.out_h * image.batch / (3 * threads), 1, rows_out);
    per_image = (image.out_h + rows_out - 1) / rows_out;
    rows_out = (image.out_h + per_image - 1) / per_image;
    rows_in = (rows_out - 1) * p.stride_h + extra;
  }
  int64_t plane() const { return rows_in * width; }
  // Bytes of one slot, in whole cache lines.
  int64_t bytes(const ConvParams& p) const { return (p.in_channels * plane() * 4 + 63) / 64 * 64; }
};

ConvStem::ConvStem(const ConvParams& params) : p_(params) {
  if (!supports(p_)) fail(Code::invalid_argument, "convolution from planes: groups are not supported");
  out_blocks_ = channel_blocks(p_.out_channels);
  depth_ = p_.in_channels * p_.kernel_h * p_.kernel_w;
  panel_blocks_ = static_cast<int>(std::min<int64_t>(out_blocks_, conv_tile_kernels().max_blocks));
}

size_t ConvStem::packed_floats() const { return static_cast<size_t>(out_blocks_ * kChannelBlock * (depth_ + 1)); }

// Packed: the biases, then panels [in channel][kh][kw][panel_blocks * 16].
void ConvStem::pack(const float* weights, const float* bias, float* packed) const {
  std::fill_n(packed, out_blocks_ * kChannelBlock, 0.0f);
  if (bias != nullptr) std::copy_n(bias, p_.out_channels, packed);
  for (int64_t block = 0; block < out_blocks_; ++block) {
    const int64_t first = block / panel_blocks_ * panel_blocks_;  // of the panel
    const int64_t width = std::min<int64_t>(panel_blocks_, out_blocks_ - first) * kChannelBlock;
    const int64_t o = block * kChannelBlock, filters = std::min<int64_t>(kChannelBlock, p_.out_channels - o);
    interleave_filters(filters, depth_, weights + o * depth_, depth_,
                       packed + (out_blocks_ + first * depth_ + block - first) * kChannelBlock, width);
  }
}

size_t ConvStem::workspace_bytes(const ConvImage& image, int threads) const {
  if (image.out_h * image.out_w == 0) return 0;
  const int64_t offsets = (depth_ * static_cast<int64_t>(sizeof(int64_t)) + 63) / 64 * 64;
  return static_cast<size_t>(offsets + threads * Strips(p_, image, threads).bytes(p_));
}

void ConvStem::run(const ConvImage& image, const ConvBuffers& buffers, ThreadPool& pool) const {
  if (image.batch * image.out_h * image.out_w == 0) return;
  const ConvTileKernels& kernels = conv_tile_kernels();
  const Strips strips(p_, image, pool.threads());
  int64_t* offsets = static_cast<int64_t*>(buffers.workspace);
  for (int64_t c = 0, i = 0; c < p_.in_channels; ++c) {
    for (int64_t kh = 0; kh < p_.kernel_h; ++kh) {
      for (int64_t kw = 0; kw < p_.kernel_w; ++kw, ++i) {
        offsets[i] = c * strips.plane() + kh * p_.dilation_h * strips.width + kw * p_.dilation_w;
      }
    }
  }
  char* slots = static_cast<char*>(buffers.workspace) + (depth_ * sizeof(int64_t) + 63) / 64 * 64;
  const int max_pixels = kernels.max_pixels[panel_blocks_];
  const int64_t row_tiles = (image.out_w + max_pixels - 1) / max_pixels;
  const int64_t out_plane = image.out_h * image.out_w * kChannelBlock;
  const int64_t items = image.batch * strips.per_image;
  const double macs = static_cast<double>(image.batch * out_plane * out_blocks_ * depth_);

  parallel_items(pool, items, macs / kMacsPerNs / static_cast<double>(items), [&](int slot, int64_t item) {
    const int64_t n = item / strips.per_image, first_row = item % strips.per_image * strips.rows_out;
    const int64_t end_row = std::min(first_row + strips.rows_out, image.out_h);
    float* padded = reinterpret_cast<float*>(slots + slot * strips.bytes(p_));
    const int64_t top = first_row * p_.stride_h - image.pad_top;
    const int64_t left = std::clamp<int64_t>(image.pad_left, 0, strips.width);
    const int64_t copied = std::clamp<int64_t>(strips.width - left, 0, image.in_w);
    for (int64_t c = 0; c < p_.in_channels; ++c) {
      for (int64_t r = 0; r < strips.rows_in; ++r) {
        float* to = padded + c * strips.plane() + r * strips.width;
        if (top + r < 0 || top + r >= image.in_h) {
          std::fill_n(to, strips.width, 0.0f);
          continue;
        }
        std::fill_n(to, left, 0.0f);
        std::copy_n(buffers.x + ((n * p_.in_channels + c) * image.in_h + top + r) * image.in_w, copied, to + left);
        std::fill_n(to + left + copied, strips.width - left - copied, 0.0f);
      }
    }
    StemTile t;
    t.pixel_stride = p_.stride_w;
    t.offsets = offsets;
    t.depth = depth_;
    t.out.block_stride = out_plane;
    t.out.activation = p_.activation;
    t.out.residual_last = p_.residual_last;
    for (int64_t block = 0; block < out_blocks_; block += panel_blocks_) {
      const int blocks = static_cast<int>(std::min<int64_t>(panel_blocks_, out_blocks_ - block));
      t.w = buffers.packed + out_blocks_ * kChannelBlock + block * kChannelBlock * depth_;
      t.out.bias = buffers.packed + block * kChannelBlock;
      for (int64_t row = first_row; row < end_row; ++row) {
        for (int64_t tile = 0; tile < row_tiles; ++tile) {
          const int64_t begin = image.out_w * tile / row_tiles, end = image.out_w * (tile + 1) / row_tiles;
          const int64_t y = (n * out_blocks_ + block) * out_plane + (row * image.out_w + begin) * kChannelBlock;
          t.x = padded + (row - first_row) * p_.stride_h * strips.width + begin * p_.stride_w;
          t.out.y = buffers.y + y;
          t.out.residual = buffers.residual ? buffers.residual + y : nullptr;
          kernels.stem[blocks][end - begin](t);
        }
      }
    }
  });
}

}  // namespace epona
