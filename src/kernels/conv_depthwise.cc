#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/unaligned.h"
#include "kernels/conv.h"
#include "kernels/depthwise_tile.h"
#include "kernels/parallel.h"

namespace epona {
namespace {
constexpr double kMacsPerNs = 12;
}

ConvDepthwise::ConvDepthwise(const ConvParams& params) : p_(params), blocks_(channel_blocks(params.out_channels)) {
  if (!supports(p_)) fail(Code::invalid_argument, "depthwise convolution: every channel must be a group of its own");
}

size_t ConvDepthwise::packed_floats() const {
  return static_cast<size_t>(blocks_ * kChannelBlock * (1 + static_cast<int64_t>(p_.kernel_h) * p_.kernel_w));
}

// Packed: the biases, then for each block its taps [kh][kw][16].
void ConvDepthwise::pack(const float* weights, const float* bias, float* packed) const {
  const int64_t taps = static_cast<int64_t>(p_.kernel_h) * p_.kernel_w;
  std::memset(packed, 0, packed_floats() * sizeof(float));
  if (bias != nullptr) std::copy_n(bias, p_.out_channels, packed);
  float* out = packed + blocks_ * kChannelBlock;
  for (int64_t c = 0; c < p_.out_channels; ++c) {
    float* to = out + c / kChannelBlock * taps * kChannelBlock + c % kChannelBlock;
    for (int64_t tap = 0; tap < taps; ++tap) to[tap * kChannelBlock] = load_unaligned(weights + c * taps + tap);
  }
}

void ConvDepthwise::run(const ConvImage& image, const ConvBuffers& buffers, ThreadPool& pool) const {
  if (image.batch * image.out_h * image.out_w == 0) return;
  const DepthwiseKernels& kernels = depthwise_kernels();
  const DepthwiseTileFn* run_tile = kernels.general;
  if (p_.dilation_w == 1 && p_.stride_w <= 2 && (p_.kernel_w == 3 || p_.kernel_w == 5 || p_.kernel_w == 7)) {
    run_tile = kernels.special[(p_.kernel_w - 3) / 2][p_.stride_w - 1];
  }
  const int64_t row_tiles = (image.out_w + DepthwiseKernels::kMaxPixels - 1) / DepthwiseKernels::kMaxPixels;
  const int64_t taps = static_cast<int64_t>(p_.kernel_h) * p_.kernel_w;
  const int64_t planes = image.batch * blocks_;
  const int64_t strips =
      planes >= 4 * pool.threads() ? 1 : std::min<int64_t>(image.out_h, 4 * pool.threads() / planes + 1);
  const double macs = static_cast<double>(planes * image.out_h * image.out_w * taps * kChannelBlock);

  parallel_items(pool, planes * strips, macs / kMacsPerNs / static_cast<double>(planes * strips),
                 [&](int, int64_t item) {
                   const int64_t strip = item % strips, plane = item / strips, block = plane % blocks_;
                   const float* x = buffers.x + plane * image.in_h * image.in_w * kChannelBlock;
                   const float* w = buffers.packed + blocks_ * kChannelBlock + block * taps * kChannelBlock;
                   DepthwiseTile t;
                   t.x_row_stride = p_.dilation_h * image.in_w * kChannelBlock;
                   t.kernel_w = p_.kernel_w;
                   t.stride_w = p_.stride_w;
                   t.dilation_w = p_.dilation_w;
                   t.out.bias = buffers.packed + block * kChannelBlock;
                   t.out.activation = p_.activation;
                   t.out.residual_last = p_.residual_last;
                   for (int64_t row = image.out_h * strip / strips; row < image.out_h * (strip + 1) / strips; ++row) {
                     const int64_t top = row * p_.stride_h - image.pad_top;
                     int64_t kh_begin = 0, kh_end = p_.kernel_h;
                     while (kh_begin < kh_end && top + kh_begin * p_.dilation_h < 0) ++kh_begin;
                     while (kh_end > kh_begin && top + (kh_end - 1) * p_.dilation_h >= image.in_h) --kh_end;
                     t.rows = static_cast<int>(kh_end - kh_begin);
                     t.w = w + kh_begin * p_.kernel_w * kChannelBlock;
                     for (int64_t tile = 0; tile < row_tiles; ++tile) {
                       const int64_t begin = image.out_w * tile / row_tiles, end = image.out_w * (tile + 1) / row_tiles;
                       const int64_t left = begin * p_.stride_w - image.pad_left;
                       t.x = x + ((top + kh_begin * p_.dilation_h) * image.in_w + left) * kChannelBlock;
                       t.column_begin = static_cast<int>(std::max<int64_t>(0, -left));
                       t.column_end = static_cast<int>(std::min<int64_t>(image.in_w - left, INT32_MAX));
                       const int64_t offset = ((plane * image.out_h + row) * image.out_w + begin) * kChannelBlock;
                       t.out.y = buffers.y + offset;
                       t.out.residual = buffers.residual ? buffers.residual + offset : nullptr;
                       run_tile[end - begin](t);
                     }
                   }
                 });
}

}  // namespace epona
