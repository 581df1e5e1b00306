#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernels/conv.h"
#include "kernels/conv_tile.h"
#include "kernels/filter_pack.h"
#include "kernels/parallel.h"

namespace epona {
namespace {

constexpr int64_t kL1Bytes = 20 << 10;  // the part of L1 that the weights of one pass may fill
constexpr int64_t kL2Bytes =
    256 << 10;  // the part of a core's L2 that a strip, its input and one panel's output, may fill
constexpr double kMacsPerNs = 32;

/// Outputs are cut into rows, and rows into tiles of nearly equal length. Without padding, stride or a filter the whole
/// image is one row.
struct Tiling {
  int64_t rows, row_pixels, row_tiles, in_w;

  Tiling(const ConvParams& p, const ConvImage& image, int max_pixels)
      : rows(image.out_h), row_pixels(image.out_w), in_w(image.in_w) {
    const bool pointwise = p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 && p.stride_w == 1 &&
                           image.pad_top == 0 && image.pad_left == 0 && image.out_h == image.in_h &&
                           image.out_w == image.in_w;
    if (pointwise) {
      row_pixels *= rows;
      in_w *= rows;
      rows = 1;
    }
    row_tiles = (row_pixels + max_pixels - 1) / max_pixels;
  }
  int64_t begin(int64_t tile) const { return row_pixels * tile / row_tiles; }
};

/// Whether a filter column of the tile [begin, end) falls into the padding.
bool at_edge(const ConvParams& p, const ConvImage& image, const Tiling& tiling, int64_t tile) {
  const int64_t begin = tiling.begin(tile), end = tiling.begin(tile + 1);
  return begin * p.stride_w < image.pad_left ||
         (end - 1) * p.stride_w - image.pad_left + static_cast<int64_t>(p.kernel_w - 1) * p.dilation_w >= tiling.in_w;
}

int64_t edge_tiles(const ConvParams& p, const ConvImage& image, const Tiling& tiling) {
  int64_t count = 0;
  for (int64_t t = 0; t < tiling.row_tiles; ++t) count += at_edge(p, image, tiling, t);
  return count;
}

}  // namespace

/// The taps of one tile of a row; the same for every row. Filter row kh has the taps [kh * per_row, (kh + 1) * per_row).
struct TapColumn {
  const ConvTap* taps;
  int per_row;
};

struct ConvDirect::Call {
  const ConvImage& image;
  const ConvBuffers& buffers;
  Tiling tiling;
  const TapColumn* columns;  // [row_tiles]
  int64_t strips, panel_groups, panels, depth_chunks;
};

ConvDirect::ConvDirect(const ConvParams& params) : p_(params) {
  if (!supports(p_)) fail(Code::invalid_argument, "direct convolution: channels of a group must be multiples of 16");
  in_group_ = p_.in_channels / p_.groups;
  out_blocks_ = channel_blocks(p_.out_channels / p_.groups);
  panel_blocks_ = static_cast<int>(std::min<int64_t>(out_blocks_, conv_tile_kernels().max_blocks));
}

bool ConvDirect::supports(const ConvParams& p) {
  return p.groups == 1 ||
         ((p.in_channels / p.groups) % kChannelBlock == 0 && (p.out_channels / p.groups) % kChannelBlock == 0);
}

int64_t ConvDirect::panel_floats(int blocks) const {
  return in_group_ * p_.kernel_h * p_.kernel_w * blocks * kChannelBlock;
}

size_t ConvDirect::packed_floats() const {
  return static_cast<size_t>((panel_floats(1) + kChannelBlock) * out_blocks_ * p_.groups);
}

// Packed: the biases of all blocks, then for each group its panels [in block][tap][channel of the block][out channel].
void ConvDirect::pack(const float* weights, const float* bias, float* packed) const {
  const int64_t out_group = p_.out_channels / p_.groups, taps = static_cast<int64_t>(p_.kernel_h) * p_.kernel_w;
  const int64_t bias_floats = out_blocks_ * p_.groups * kChannelBlock, filter = in_group_ * taps;
  std::fill_n(packed, bias_floats, 0.0f);
  if (bias != nullptr) std::copy_n(bias, p_.out_channels, packed);
  std::vector<float> block_taps(taps == 1 ? 0 : static_cast<size_t>(kChannelBlock * taps * kChannelBlock));
  for (int64_t item = 0; item < p_.groups * out_blocks_; ++item) {
    const int64_t g = item / out_blocks_, block = item % out_blocks_, first = block / panel_blocks_ * panel_blocks_;
    const int64_t width = std::min<int64_t>(panel_blocks_, out_blocks_ - first) * kChannelBlock;
    const int64_t o = block * kChannelBlock, filters = std::min<int64_t>(kChannelBlock, out_group - o);
    const float* w = weights + (g * out_group + o) * filter;
    float* to = packed + bias_floats + ((g * out_blocks_ + first) * filter + block - first) * kChannelBlock;
    if (taps == 1) {
      interleave_filters(filters, in_group_, w, filter, to, width);
      continue;
    }
    for (int64_t c0 = 0; c0 < in_group_; c0 += kChannelBlock, w += kChannelBlock * taps) {
      const int64_t channels = std::min<int64_t>(kChannelBlock, in_group_ - c0);
      interleave_filters(filters, channels * taps, w, filter, block_taps.data(), kChannelBlock);
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t c = 0; c < channels; ++c, to += width)
          std::copy_n(block_taps.data() + (c * taps + tap) * kChannelBlock, kChannelBlock, to);
      }
    }
  }
}

size_t ConvDirect::workspace_bytes(const ConvImage& image, int) const {
  const int max_pixels = conv_tile_kernels().max_pixels[panel_blocks_];
  const Tiling tiling(p_, image, max_pixels);
  const int64_t taps = static_cast<int64_t>(p_.kernel_h) * p_.kernel_w;
  const int64_t column = taps * (sizeof(ConvTap) + max_pixels * sizeof(int64_t));
  return tiling.row_tiles * sizeof(TapColumn) + (edge_tiles(p_, image, tiling) + 1) * column;
}

void ConvDirect::run_item(const Call& call, int64_t item, int) const {
  const ConvImage& image = call.image;
  const ConvTileKernels& kernels = conv_tile_kernels();
  const int64_t panel_group = item % call.panel_groups;
  item /= call.panel_groups;
  const int64_t strip = item % call.strips;
  item /= call.strips;
  const int64_t g = item % p_.groups, n = item / p_.groups;

  const int64_t in_plane = image.in_h * image.in_w * kChannelBlock;
  const int64_t out_plane = image.out_h * image.out_w * kChannelBlock;
  const int64_t group_blocks = channel_blocks(in_group_);
  const int64_t tiles = call.tiling.rows * call.tiling.row_tiles;
  const int64_t tile_begin = tiles * strip / call.strips, tile_end = tiles * (strip + 1) / call.strips;
  const int64_t panel_begin = call.panels * panel_group / call.panel_groups;
  const int64_t panel_end = call.panels * (panel_group + 1) / call.panel_groups;
  const float* x = call.buffers.x + (n * group_blocks * p_.groups + g * group_blocks) * in_plane;
  const float* weights =
      call.buffers.packed + out_blocks_ * p_.groups * kChannelBlock + g * panel_floats(1) * out_blocks_;

  ConvTile t;
  t.x_block_stride = in_plane;
  t.filter_taps = p_.kernel_h * p_.kernel_w;
  t.out.block_stride = out_plane;
  t.out.residual_last = p_.residual_last;
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    const int64_t block = panel * panel_blocks_;
    const int blocks = static_cast<int>(std::min<int64_t>(panel_blocks_, out_blocks_ - block));
    const float* bias = call.buffers.packed + (g * out_blocks_ + block) * kChannelBlock;
    const int64_t y_offset = (n * p_.groups * out_blocks_ + g * out_blocks_ + block) * out_plane;
    const int64_t depth_chunks = call.depth_chunks;
    for (int64_t chunk = 0; chunk < depth_chunks; ++chunk) {
      const int64_t c_begin = group_blocks * chunk / depth_chunks * kChannelBlock;
      const int64_t c_end = std::min(group_blocks * (chunk + 1) / depth_chunks * kChannelBlock, in_group_);
      const bool last = chunk + 1 == depth_chunks;
      // The residual may be y itself: it has to be read before y is written.
      const float* residual = (p_.residual_last ? last : chunk == 0) ? call.buffers.residual : nullptr;
      t.in_channels = c_end - c_begin;
      t.w = weights + panel_floats(1) * block + c_begin * t.filter_taps * blocks * kChannelBlock;
      t.out.bias = bias;
      t.out.resume = chunk > 0;
      t.out.activation = last ? p_.activation : Activation();
      const float* x_chunk = x + c_begin / kChannelBlock * in_plane;
      int64_t row = tile_begin / call.tiling.row_tiles, column = tile_begin % call.tiling.row_tiles;
      for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
        const int64_t begin = call.tiling.begin(column), end = call.tiling.begin(column + 1);
        const int64_t top = row * p_.stride_h - image.pad_top;
        int64_t kh_begin = 0, kh_end = p_.kernel_h;
        while (kh_begin < kh_end && top + kh_begin * p_.dilation_h < 0) ++kh_begin;
        while (kh_end > kh_begin && top + (kh_end - 1) * p_.dilation_h >= image.in_h) --kh_end;
        const TapColumn& taps = call.columns[column];
        t.taps = taps.taps + kh_begin * taps.per_row;
        t.tap_count = static_cast<int>(kh_end - kh_begin) * taps.per_row;
        t.x = x_chunk + (top * image.in_w + begin * p_.stride_w - image.pad_left) * kChannelBlock;
        const int64_t y = y_offset + (row * call.tiling.row_pixels + begin) * kChannelBlock;
        t.out.y = call.buffers.y + y;
        t.out.residual = residual ? residual + y : nullptr;
        t.prefetch_next(tile - tile_begin, t.in_channels * t.filter_taps * blocks * kChannelBlock);
        kernels.conv[blocks][end - begin](t);
        if (++column == call.tiling.row_tiles) column = 0, ++row;
      }
    }
  }
}

void ConvDirect::run(const ConvImage& image, const ConvBuffers& buffers, ThreadPool& pool) const {
  if (image.batch * image.out_h * image.out_w == 0) return;
  const int max_pixels = conv_tile_kernels().max_pixels[panel_blocks_];
  Call call{image, buffers, Tiling(p_, image, max_pixels), nullptr, 1, 1, 0, 1};

  // Tap tables: one for all tiles inside the image, one for each tile of a row that touches its edge.
  const int64_t taps = static_cast<int64_t>(p_.kernel_h) * p_.kernel_w;
  TapColumn* columns = static_cast<TapColumn*>(buffers.workspace);
  ConvTap* tap_memory = reinterpret_cast<ConvTap*>(columns + call.tiling.row_tiles);
  const auto build = [&](int64_t begin, int64_t end, bool edge) {
    TapColumn column{tap_memory, 0};
    int64_t* offsets = reinterpret_cast<int64_t*>(tap_memory + taps);
    for (int kh = 0; kh < p_.kernel_h; ++kh) {
      int count = 0;
      for (int kw = 0; kw < p_.kernel_w; ++kw) {
        bool any = false;
        for (int64_t p = 0; p < end - begin; ++p) {
          const int64_t in_w = (begin + p) * p_.stride_w - image.pad_left + kw * p_.dilation_w;
          const bool inside = !edge || (in_w >= 0 && in_w < call.tiling.in_w);
          any |= inside;
          offsets[p] =
              inside ? (kh * p_.dilation_h * image.in_w + p * p_.stride_w + kw * p_.dilation_w) * kChannelBlock : -1;
        }
        if (!any) continue;
        tap_memory[kh * column.per_row + count++] = {offsets, kh * static_cast<int64_t>(p_.kernel_w) + kw};
        offsets += end - begin;
      }
      column.per_row = count;
    }
    tap_memory = reinterpret_cast<ConvTap*>(offsets);
    return column;
  };
  const TapColumn inside = build(0, max_pixels, false);
  for (int64_t t = 0; t < call.tiling.row_tiles; ++t) {
    const int64_t begin = call.tiling.begin(t), end = call.tiling.begin(t + 1);
    columns[t] = at_edge(p_, image, call.tiling, t) ? build(begin, end, true) : inside;
  }
  call.columns = columns;

  // Sums over more weights than L1 holds are cut: the weights of one part serve all tiles of a strip before the next.
  const int64_t block_weights = taps * kChannelBlock * panel_blocks_ * kChannelBlock * 4;
  call.depth_chunks =
      std::clamp<int64_t>((panel_floats(panel_blocks_) * 4 + kL1Bytes - 1) / std::max(kL1Bytes, block_weights), 1,
                          channel_blocks(in_group_));

  // Strips whose input stays in L2 while the weights stream by, unless the weights are what costs more to stream twice.
  const int64_t tiles = call.tiling.rows * call.tiling.row_tiles;
  call.panels = (out_blocks_ + panel_blocks_ - 1) / panel_blocks_;
  const int64_t in_bytes = image.in_h * image.in_w * in_group_ * 4;
  const int64_t strip_bytes = in_bytes + image.out_h * image.out_w * panel_blocks_ * kChannelBlock * 4;
  const int64_t weight_bytes = panel_floats(1) * out_blocks_ * 4;
  if (strip_bytes > kL2Bytes) {
    const int64_t strips = std::min(tiles, (strip_bytes + kL2Bytes - 1) / kL2Bytes);
    if (strips * weight_bytes < call.panels * in_bytes) call.strips = strips;
  }
  const int64_t threads = pool.threads(), outer = image.batch * p_.groups;
  if (threads > 1) {
    const int64_t wanted = 3 * threads;
    if (call.strips > 1) call.strips = std::min(tiles, (call.strips + threads - 1) / threads * threads);
    if (outer * call.strips < wanted) {
      if (weight_bytes > in_bytes) {
        call.panel_groups = std::min(call.panels, (wanted + outer * call.strips - 1) / (outer * call.strips));
      }
      const int64_t have = outer * call.panel_groups;
      if (have * call.strips < wanted) call.strips = std::min(tiles, (wanted + have - 1) / have);
    }
  }
  const int64_t items = outer * call.strips * call.panel_groups;
  const double macs =
      static_cast<double>(image.batch * image.out_h * image.out_w) * panel_floats(1) * out_blocks_ * p_.groups;
  parallel_items(pool, items, macs / kMacsPerNs / static_cast<double>(items),
                 [&](int slot, int64_t item) { run_item(call, item, slot); });
}

}  // namespace epona
