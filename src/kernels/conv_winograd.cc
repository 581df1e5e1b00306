#include <algorithm>

#include "base/error.h"
#include "kernels/conv.h"
#include "kernels/conv_tile.h"
#include "kernels/filter_pack.h"
#include "kernels/parallel.h"
#include "kernels/winograd_tile.h"

namespace epona {
namespace {

constexpr int64_t kChunkBytes = 320 << 10;  // transformed inputs and products of one chunk of tiles: about L2
constexpr int64_t kL1Bytes = 20 << 10;
constexpr int64_t kMinChunk = 24, kMaxChunk = 128;
constexpr double kMacsPerNs = 28;
constexpr int kMaxPoints = 36;

/// Tiles of the whole batch in chunks of nearly equal size. V of a chunk is [point][in block][tile][16], M the same for
/// the blocks of a panel. The points are one cache line further apart than needed: at a distance of a power of two all
/// stores of a transform would meet in one set of the cache.
struct Chunks {
  int64_t rows, columns, tiles, count, capacity;

  Chunks(const ConvImage& image, int m, int64_t channels) {
    rows = (image.out_h + m - 1) / m;
    columns = (image.out_w + m - 1) / m;
    tiles = image.batch * rows * columns;
    const int64_t points = (m + 2) * (m + 2);
    const int64_t fit = std::clamp(kChunkBytes / (points * channels * 4), kMinChunk, kMaxChunk);
    count = std::max<int64_t>(1, (tiles + fit - 1) / fit);
    capacity = (tiles + count - 1) / count;
  }
  int64_t begin(int64_t chunk) const { return tiles * chunk / count; }
  int64_t point_stride(int64_t blocks) const { return blocks * capacity * kChannelBlock + kChannelBlock; }
};

}  // namespace

struct ConvWinograd::Call {
  const ConvImage& image;
  const ConvBuffers& buffers;
  Chunks chunks;
};

ConvWinograd::ConvWinograd(const ConvParams& params, int m) : p_(params), m_(m), points_((m + 2) * (m + 2)) {
  if (!supports(p_) || (m != 2 && m != 4)) fail(Code::invalid_argument, "Winograd convolution: unsupported parameters");
  in_blocks_ = channel_blocks(p_.in_channels);
  out_blocks_ = channel_blocks(p_.out_channels);
  panel_blocks_ = static_cast<int>(std::min<int64_t>(out_blocks_, conv_tile_kernels().max_blocks));
}

bool ConvWinograd::supports(const ConvParams& p) {
  return p.groups == 1 && p.kernel_h == 3 && p.kernel_w == 3 && p.stride_h == 1 && p.stride_w == 1 &&
         p.dilation_h == 1 && p.dilation_w == 1;
}

size_t ConvWinograd::packed_floats() const {
  return static_cast<size_t>(out_blocks_ * kChannelBlock * (1 + points_ * p_.in_channels));
}

// Packed: the biases, then for each panel of output blocks [point][in channel][out channel of the panel].
void ConvWinograd::pack(const float* weights, const float* bias, float* packed) const {
  std::fill_n(packed, out_blocks_ * kChannelBlock, 0.0f);
  if (bias != nullptr) std::copy_n(bias, p_.out_channels, packed);
  const auto transform = winograd_kernels(m_).filter;
  alignas(64) float taps[kChannelBlock * 9 * kChannelBlock];  // [in channel][tap][out channel]
  for (int64_t block = 0; block < out_blocks_; ++block) {
    const int64_t first = block / panel_blocks_ * panel_blocks_;  // of the panel
    const int64_t width = std::min<int64_t>(panel_blocks_, out_blocks_ - first) * kChannelBlock;
    const int64_t o = block * kChannelBlock, filters = std::min<int64_t>(kChannelBlock, p_.out_channels - o);
    float* to = packed + (out_blocks_ + first * points_ * p_.in_channels + block - first) * kChannelBlock;
    for (int64_t c0 = 0; c0 < p_.in_channels; c0 += kChannelBlock) {
      const int64_t channels = std::min<int64_t>(kChannelBlock, p_.in_channels - c0);
      interleave_filters(filters, channels * 9, weights + (o * p_.in_channels + c0) * 9, p_.in_channels * 9, taps,
                         kChannelBlock);
      for (int64_t c = 0; c < channels; ++c)
        transform(taps + c * 9 * kChannelBlock, to + (c0 + c) * width, p_.in_channels * width);
    }
  }
}

// With many chunks every thread works on chunks of its own and keeps their V and M. With few, all of V is computed
// first, and then the threads share out the panels.
size_t ConvWinograd::workspace_bytes(const ConvImage& image, int threads) const {
  const Chunks chunks(image, m_, p_.in_channels + panel_blocks_ * kChannelBlock);
  const int64_t v = points_ * chunks.point_stride(in_blocks_), m = points_ * chunks.point_stride(panel_blocks_);
  const bool own = threads == 1 || chunks.count >= 2 * threads;
  return static_cast<size_t>(((own ? threads : chunks.count) * v + threads * m) * 4);
}

void ConvWinograd::transform_input(const Call& call, int64_t chunk, int64_t block, float* v) const {
  const ConvImage& image = call.image;
  const Chunks& chunks = call.chunks;
  const int n = m_ + 2;
  const auto transform = winograd_kernels(m_).input;
  int64_t inside[kMaxPoints], edge[kMaxPoints];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) inside[i * n + j] = (i * image.in_w + j) * kChannelBlock;
  }
  const int64_t plane = image.in_h * image.in_w * kChannelBlock;
  v += block * chunks.capacity * kChannelBlock;
  for (int64_t tile = chunks.begin(chunk); tile < chunks.begin(chunk + 1); ++tile, v += kChannelBlock) {
    const int64_t top = tile / chunks.columns % chunks.rows * m_ - image.pad_top;
    const int64_t left = tile % chunks.columns * m_ - image.pad_left;
    const int64_t image_index = tile / chunks.columns / chunks.rows;
    const float* x =
        call.buffers.x + (image_index * in_blocks_ + block) * plane + (top * image.in_w + left) * kChannelBlock;
    const int64_t* offsets = inside;
    if (top < 0 || left < 0 || top + n > image.in_h || left + n > image.in_w) {
      offsets = edge;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          const bool in = top + i >= 0 && top + i < image.in_h && left + j >= 0 && left + j < image.in_w;
          edge[i * n + j] = in ? inside[i * n + j] : -1;
        }
      }
    }
    transform(x, offsets, v, chunks.point_stride(in_blocks_));
  }
}

void ConvWinograd::multiply(const Call& call, int64_t chunk, int64_t panel, const float* v, float* m) const {
  const ConvImage& image = call.image;
  const Chunks& chunks = call.chunks;
  const ConvTileKernels& kernels = conv_tile_kernels();
  const int64_t block = panel * panel_blocks_;
  const int blocks = static_cast<int>(std::min<int64_t>(panel_blocks_, out_blocks_ - block));
  const int64_t begin = chunks.begin(chunk), count = chunks.begin(chunk + 1) - begin;
  const int64_t v_stride = chunks.point_stride(in_blocks_), m_stride = chunks.point_stride(panel_blocks_);

  int64_t offsets[ConvTileKernels::kMaxPixels];
  for (int p = 0; p < ConvTileKernels::kMaxPixels; ++p) offsets[p] = p * kChannelBlock;
  const ConvTap tap{offsets, 0};
  ConvTile t;
  t.x_block_stride = chunks.capacity * kChannelBlock;
  t.taps = &tap;
  t.tap_count = t.filter_taps = 1;
  t.w = call.buffers.packed + out_blocks_ * kChannelBlock + block * kChannelBlock * points_ * p_.in_channels;
  t.out.block_stride = chunks.capacity * kChannelBlock;
  const int64_t groups = (count + kernels.max_pixels[blocks] - 1) / kernels.max_pixels[blocks];
  // The weights of one pass over the tiles fit in L1.
  const int64_t row_bytes = blocks * kChannelBlock * 4;
  const int64_t parts = std::clamp<int64_t>((p_.in_channels * row_bytes + kL1Bytes - 1) / kL1Bytes, 1, in_blocks_);
  for (int64_t point = 0; point < points_; ++point) {
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t block_begin = in_blocks_ * part / parts, block_end = in_blocks_ * (part + 1) / parts;
      t.in_channels = std::min(block_end * kChannelBlock, p_.in_channels) - block_begin * kChannelBlock;
      t.out.resume = part > 0;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t first = count * g / groups, last = count * (g + 1) / groups;
        t.x = v + point * v_stride + (block_begin * chunks.capacity + first) * kChannelBlock;
        t.out.y = m + point * m_stride + first * kChannelBlock;
        t.prefetch_next(g, t.in_channels * blocks * kChannelBlock);
        kernels.conv[blocks][last - first](t);
      }
      t.w += t.in_channels * blocks * kChannelBlock;
    }
  }

  const auto transform = winograd_kernels(m_).output;
  WinogradOutput o;
  o.point_stride = m_stride;
  o.row_stride = image.out_w * kChannelBlock;
  o.out.activation = p_.activation;
  o.out.residual_last = p_.residual_last;
  for (int b = 0; b < blocks; ++b) {
    o.out.bias = call.buffers.packed + (block + b) * kChannelBlock;
    for (int64_t tile = begin; tile < begin + count; ++tile) {
      const int64_t row = tile / chunks.columns % chunks.rows * m_, column = tile % chunks.columns * m_;
      const int64_t plane = tile / chunks.columns / chunks.rows * out_blocks_ + block + b;
      const int64_t y = ((plane * image.out_h + row) * image.out_w + column) * kChannelBlock;
      o.m = m + (b * chunks.capacity + tile - begin) * kChannelBlock;
      o.rows = static_cast<int>(std::min<int64_t>(m_, image.out_h - row));
      o.columns = static_cast<int>(std::min<int64_t>(m_, image.out_w - column));
      o.out.y = call.buffers.y + y;
      o.out.residual = call.buffers.residual ? call.buffers.residual + y : nullptr;
      transform(o);
    }
  }
}

void ConvWinograd::run(const ConvImage& image, const ConvBuffers& buffers, ThreadPool& pool) const {
  const Call call{image, buffers, Chunks(image, m_, p_.in_channels + panel_blocks_ * kChannelBlock)};
  const Chunks& chunks = call.chunks;
  if (chunks.tiles == 0) return;
  const int64_t v_floats = points_ * chunks.point_stride(in_blocks_),
                m_floats = points_ * chunks.point_stride(panel_blocks_);
  const int64_t panels = (out_blocks_ + panel_blocks_ - 1) / panel_blocks_;
  const double ns = static_cast<double>(chunks.tiles * points_ * p_.in_channels * p_.out_channels) / kMacsPerNs;
  float* v = static_cast<float*>(buffers.workspace);
  if (pool.threads() == 1 || chunks.count >= 2 * pool.threads()) {
    float* m = v + pool.threads() * v_floats;
    parallel_items(pool, chunks.count, ns / static_cast<double>(chunks.count), [&](int slot, int64_t chunk) {
      for (int64_t block = 0; block < in_blocks_; ++block) transform_input(call, chunk, block, v + slot * v_floats);
      for (int64_t panel = 0; panel < panels; ++panel) {
        multiply(call, chunk, panel, v + slot * v_floats, m + slot * m_floats);
      }
    });
    return;
  }
  float* m = v + chunks.count * v_floats;
  const int64_t inputs = chunks.count * in_blocks_, products = chunks.count * panels;
  parallel_items(pool, inputs, 0.25 * static_cast<double>(points_ * kChannelBlock * chunks.capacity),
                 [&](int, int64_t item) {
                   transform_input(call, item / in_blocks_, item % in_blocks_, v + item / in_blocks_ * v_floats);
                 });
  parallel_items(pool, products, ns / static_cast<double>(products), [&](int slot, int64_t item) {
    multiply(call, item % chunks.count, item / chunks.count, v + item % chunks.count * v_floats, m + slot * m_floats);
  });
}

}  // namespace epona
