#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/conv_int8.h"
#include "kernels/gemm_grid.h"
#include "kernels/gemm_int8_tile.h"
#include "kernels/isa.h"
#include "kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/winograd_int8.cc"
#define EPONA_WITH_INT_DOT
#include "kernels/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef EPONA_WINOGRAD_INT8_TYPES
#define EPONA_WINOGRAD_INT8_TYPES
namespace epona::int8_detail {

/// Products of all tiles of a block with one panel: m[point][tile][width]. Outputs past the image are not written.
struct WinogradOutput {
  const int32_t* m;
  int64_t tiles, first_tile;  ///< the block, and its first tile in the whole batch
  int64_t tiles_h, tiles_w;
  ConvImage image;
  const int32_t* add;
  const float* scale;  ///< both for the panel
  int32_t zero, low, high;
  bool is_signed;
  uint8_t* y;  ///< first channel of the panel
  int64_t channels;
};

struct WinogradInt8Kernels {
  int channels_in;   ///< that are transformed at once
  int channels_out;  ///< width of a panel
  /// Four by four pixels -> v[point * point_stride + channel].
  void (*transform_input)(const uint8_t* const* pixels, int64_t channels, bool is_signed, int16_t* v,
                          int64_t point_stride);
  void (*transform_output)(const WinogradOutput& o);
  /// g[tap][column of 8][2 channels] -> u[point * point_stride + (column, channel)]
  void (*transform_weights)(const int16_t* g, int16_t* u, int64_t point_stride);
};
constexpr int kPoints = 16;

}  // namespace epona::int8_detail
#endif

HWY_BEFORE_NAMESPACE();
namespace epona::int8_detail::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<int32_t>;
using DF = hn::RebindToFloat<D>;
using D16 = hn::Repartition<int16_t, D>;
using V = hn::Vec<D>;
using VF = hn::Vec<DF>;
using V16 = hn::Vec<D16>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));

// Lavin and Gray, "Fast algorithms for convolutional neural networks" (2015): Y = A^T ((G g G^T) * (B^T d B)) A. G is
// doubled to stay whole, so that sums are four times too large.

template <bool kSigned>
void input_tile(const uint8_t* const* pixels, int64_t channels, int16_t* v, int64_t point_stride) {
  constexpr D16 d;
  using Byte = std::conditional_t<kSigned, int8_t, uint8_t>;
  for (int64_t c = 0; c < channels; c += 2 * kLanes) {
    V16 t[4][4];
    HWY_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      V16 x[4];
      HWY_UNROLL(4)
      for (int i = 0; i < 4; ++i)
        x[i] =
            hn::PromoteTo(d, hn::LoadU(hn::Rebind<Byte, D16>(), reinterpret_cast<const Byte*>(pixels[i * 4 + j]) + c));
      t[0][j] = hn::Sub(x[0], x[2]);
      t[1][j] = hn::Add(x[1], x[2]);
      t[2][j] = hn::Sub(x[2], x[1]);
      t[3][j] = hn::Sub(x[1], x[3]);
    }
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      int16_t* to = v + 4 * i * point_stride + c;
      hn::StoreU(hn::Sub(t[i][0], t[i][2]), d, to);
      hn::StoreU(hn::Add(t[i][1], t[i][2]), d, to + point_stride);
      hn::StoreU(hn::Sub(t[i][2], t[i][1]), d, to + 2 * point_stride);
      hn::StoreU(hn::Sub(t[i][1], t[i][3]), d, to + 3 * point_stride);
    }
  }
}

void transform_input(const uint8_t* const* pixels, int64_t channels, bool is_signed, int16_t* v, int64_t point_stride) {
  is_signed ? input_tile<true>(pixels, channels, v, point_stride)
            : input_tile<false>(pixels, channels, v, point_stride);
}

void transform_weights(const int16_t* g, int16_t* u, int64_t point_stride) {
  constexpr hn::CappedTag<int16_t, 8> d;
  constexpr int kStep = static_cast<int>(hn::MaxLanes(d));
  for (int c = 0; c < 16; c += kStep) {
    hn::Vec<decltype(d)> t[4][3];
    for (int j = 0; j < 3; ++j) {
      const auto a = hn::LoadU(d, g + j * 16 + c), b = hn::LoadU(d, g + (3 + j) * 16 + c),
                 e = hn::LoadU(d, g + (6 + j) * 16 + c);
      const auto ends = hn::Add(a, e);
      t[0][j] = hn::Add(a, a);
      t[1][j] = hn::Add(ends, b);
      t[2][j] = hn::Sub(ends, b);
      t[3][j] = hn::Add(e, e);
    }
    for (int i = 0; i < 4; ++i) {
      int16_t* to = u + 4 * i * point_stride + c;
      const auto ends = hn::Add(t[i][0], t[i][2]);
      hn::StoreU(hn::Add(t[i][0], t[i][0]), d, to);
      hn::StoreU(hn::Add(ends, t[i][1]), d, to + point_stride);
      hn::StoreU(hn::Sub(ends, t[i][1]), d, to + 2 * point_stride);
      hn::StoreU(hn::Add(t[i][2], t[i][2]), d, to + 3 * point_stride);
    }
  }
}

/// Four sums of one vector of channels: y[row * 2 + column], four times too large.
HWY_INLINE void sums_of_tile(const int32_t* m, int64_t point_stride, V (&y)[4]) {
  constexpr D d;
  V t[2][4];
  HWY_UNROLL(4)
  for (int j = 0; j < 4; ++j) {
    const V m0 = hn::LoadU(d, m + j * point_stride), m1 = hn::LoadU(d, m + (4 + j) * point_stride);
    const V m2 = hn::LoadU(d, m + (8 + j) * point_stride), m3 = hn::LoadU(d, m + (12 + j) * point_stride);
    t[0][j] = hn::Add(hn::Add(m0, m1), m2);
    t[1][j] = hn::Sub(hn::Sub(m1, m2), m3);
  }
  HWY_UNROLL(2)
  for (int i = 0; i < 2; ++i) {
    y[2 * i] = hn::Add(hn::Add(t[i][0], t[i][1]), t[i][2]);
    y[2 * i + 1] = hn::Sub(hn::Sub(t[i][1], t[i][2]), t[i][3]);
  }
}

HWY_INLINE V round_sum(V sum, V add, VF scale, VF low, VF high) {
  const VF y = hn::Mul(hn::ConvertTo(DF(), hn::Add(hn::ShiftRight<2>(sum), add)), scale);
  return hn::NearestIntInRange(D(), hn::Min(high, hn::Max(low, y)));
}

template <class T>
void output_tiles(const WinogradOutput& o) {
  constexpr D d;
  constexpr DF df;
  constexpr D16 d16;
  constexpr hn::Rebind<T, D16> dt;
  const V add0 = hn::LoadU(d, o.add), add1 = hn::LoadU(d, o.add + kLanes);
  const VF scale0 = hn::LoadU(df, o.scale), scale1 = hn::LoadU(df, o.scale + kLanes);
  const VF low = hn::Set(df, static_cast<float>(o.low - o.zero)),
           high = hn::Set(df, static_cast<float>(o.high - o.zero));
  const V16 zero = hn::Set(d16, static_cast<int16_t>(o.zero));
  const int64_t point_stride = o.tiles * 2 * kLanes, per_image = o.tiles_h * o.tiles_w;
  for (int64_t t = 0; t < o.tiles; ++t) {
    const int64_t tile = o.first_tile + t, n = tile / per_image;
    const int64_t y0 = tile % per_image / o.tiles_w * 2, x0 = tile % o.tiles_w * 2;
    V a[4], b[4];
    sums_of_tile(o.m + t * 2 * kLanes, point_stride, a);
    sums_of_tile(o.m + t * 2 * kLanes + kLanes, point_stride, b);
    T* to = reinterpret_cast<T*>(o.y) + ((n * o.image.out_h + y0) * o.image.out_w + x0) * o.channels;
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      if (y0 + i / 2 >= o.image.out_h || x0 + i % 2 >= o.image.out_w) continue;
      const V16 q =
          hn::OrderedDemote2To(d16, round_sum(a[i], add0, scale0, low, high), round_sum(b[i], add1, scale1, low, high));
      hn::StoreU(hn::DemoteTo(dt, hn::Add(q, zero)), dt, to + (i / 2 * o.image.out_w + i % 2) * o.channels);
    }
  }
}

void transform_output(const WinogradOutput& o) { o.is_signed ? output_tiles<int8_t>(o) : output_tiles<uint8_t>(o); }

const WinogradInt8Kernels& winograd_table() {
  static const WinogradInt8Kernels k{static_cast<int>(2 * kLanes), static_cast<int>(2 * kLanes), transform_input,
                                     transform_output, transform_weights};
  return k;
}

}  // namespace epona::int8_detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {
namespace int8_detail {
HWY_EXPORT(winograd_table);
const WinogradInt8Kernels& winograd_int8_kernels() {
  init_isa();
  return HWY_DYNAMIC_DISPATCH(winograd_table)();
}
}  // namespace int8_detail

namespace {

using namespace int8_detail;
using gemm_detail::ceil_div;
using gemm_detail::round_up;

constexpr int64_t kBlockBytes = 256 * 1024;  // of transformed input: half of a small L2

int32_t byte_at(const void* values, int64_t i, bool is_signed) {
  return is_signed ? static_cast<const int8_t*>(values)[i] : static_cast<const uint8_t*>(values)[i];
}

struct Sizes {
  int64_t tiles_h, tiles_w, tiles, block, width, panels, input_bytes, product_bytes;

  Sizes(const ConvParams& p, const ConvImage& image)
      : tiles_h(ceil_div(image.out_h, 2)),
        tiles_w(ceil_div(image.out_w, 2)),
        tiles(image.batch * tiles_h * tiles_w),
        width(winograd_int8_kernels().channels_out),
        panels(p.out_channels / width) {
    const int64_t row = kPoints * p.in_channels * 2, rows = kernels().rows;
    const int64_t most = std::max(rows, kBlockBytes / row);
    block = std::min(tiles, ceil_div(tiles, ceil_div(tiles, most)));
    input_bytes = round_up(block * row, 64);
    product_bytes = round_up(kPoints * block * width * 4, 64);
  }
};

}  // namespace

bool WinogradInt8::supports(const ConvParams& p, Int8ConvTypes types, bool zeros) {
  const WinogradInt8Kernels& table = winograd_int8_kernels();
  // Four times a sum has to fit 32 bits.
  const int64_t weight = types.w_signed && !zeros ? 128 : 255;
  return kernels().group == 2 && p.groups == 1 && p.kernel_h == 3 && p.kernel_w == 3 && p.stride_h == 1 &&
         p.stride_w == 1 && p.dilation_h == 1 && p.dilation_w == 1 && p.in_channels % table.channels_in == 0 &&
         p.in_channels >= 32 && p.out_channels % table.channels_out == 0 &&
         9 * 255 * weight * p.in_channels < int64_t{1} << 29;
}

// Packed: [panel][point][channel pair][column][2], then the sum of each output channel's weights.
size_t WinogradInt8::packed_bytes() const {
  return static_cast<size_t>(kPoints * p_.in_channels * p_.out_channels * 2 + p_.out_channels * 4);
}

void WinogradInt8::pack(const void* weights, const void* zeros, int64_t zero_stride, void* packed) const {
  const WinogradInt8Kernels& table = winograd_int8_kernels();
  const int64_t width = table.channels_out, channels = p_.in_channels;
  int16_t* const u = static_cast<int16_t*>(packed);
  int32_t* const sums = reinterpret_cast<int32_t*>(u + kPoints * channels * p_.out_channels);
  std::fill_n(sums, p_.out_channels, 0);
  const uint8_t* const w = static_cast<const uint8_t*>(weights);
  for (int64_t o = 0; o < p_.out_channels; o += 8) {
    int16_t zero[8];
    for (int64_t i = 0; i < 8; ++i)
      zero[i] = static_cast<int16_t>(zeros ? byte_at(zeros, (o + i) * zero_stride, types_.w_signed) : 0);
    int16_t* const to = u + o / width * kPoints * channels * width + o % width * 2;
    for (int64_t c = 0; c < channels; c += 2) {
      int16_t g[9 * 16];
      for (int64_t i = 0; i < 8; ++i) {
        const uint8_t* from = w + ((o + i) * channels + c) * 9;
        int32_t sum = 0;
        for (int64_t k = 0; k < 18; ++k) {
          const int32_t value = (types_.w_signed ? static_cast<int8_t>(from[k]) : from[k]) - zero[i];
          g[k % 9 * 16 + 2 * i + k / 9] = static_cast<int16_t>(value);
          sum += value;
        }
        sums[o + i] += sum;
      }
      table.transform_weights(g, to + c * width, channels * width);
    }
  }
}

size_t WinogradInt8::workspace_bytes(const ConvImage& image, int threads) const {
  const Sizes at(p_, image);
  const int64_t shared = round_up(p_.out_channels * 4, 64) * 2 + round_up(p_.in_channels, 64);
  return static_cast<size_t>(shared + (at.input_bytes + at.product_bytes) * threads);
}

void WinogradInt8::run(const ConvImage& image, const Int8ConvCall& call, ThreadPool& pool) const {
  if (image.batch * image.out_h * image.out_w <= 0) return;
  const Kernels& gemm = kernels();
  const WinogradInt8Kernels& table = winograd_int8_kernels();
  const Sizes at(p_, image);
  const int64_t in = p_.in_channels, out = p_.out_channels;
  uint8_t* const base = static_cast<uint8_t*>(call.workspace);
  int32_t* const add = reinterpret_cast<int32_t*>(base);
  float* const scale = reinterpret_cast<float*>(base + round_up(out * 4, 64));
  uint8_t* const padding = base + 2 * round_up(out * 4, 64);
  uint8_t* const slots = padding + round_up(in, 64);
  const int16_t* const u = static_cast<const int16_t*>(call.packed);
  const int32_t* const sums = reinterpret_cast<const int32_t*>(u + kPoints * in * out);
  for (int64_t c = 0; c < out; ++c) {
    const uint32_t bias = call.bias ? static_cast<uint32_t>(call.bias[c]) : 0u;
    add[c] = static_cast<int32_t>(bias - static_cast<uint32_t>(call.x_zero) * static_cast<uint32_t>(sums[c]));
    scale[c] = call.scale[c] * call.x_scale;
  }
  std::memset(padding, call.x_zero, static_cast<size_t>(in));

  const int64_t blocks = ceil_div(at.tiles, at.block);
  const double ns = 2.0 * kPoints * static_cast<double>(in * out * at.tiles) / gemm.ops_per_ns;
  const gemm_detail::Grid grid = gemm_detail::split_grid(blocks, at.panels, at.tiles, out, ns, pool.threads());
  const int64_t columns =
      grid.rows * grid.columns > 1 && blocks < pool.threads() ? std::min<int64_t>(pool.threads(), at.panels) : 1;
  const int64_t items = blocks * columns;
  parallel_items(pool, items, grid.rows * grid.columns > 1 ? 1e6 : 0, [&](int slot, int64_t item) {
    int16_t* const v = reinterpret_cast<int16_t*>(slots + slot * (at.input_bytes + at.product_bytes));
    int32_t* const m = reinterpret_cast<int32_t*>(reinterpret_cast<uint8_t*>(v) + at.input_bytes);
    const int64_t block = item / columns, part = item % columns;
    const int64_t first = at.tiles * block / blocks, count = at.tiles * (block + 1) / blocks - first;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t tile = first + t, n = tile / (at.tiles_h * at.tiles_w);
      const int64_t y0 = tile / at.tiles_w % at.tiles_h * 2 - image.pad_top,
                    x0 = tile % at.tiles_w * 2 - image.pad_left;
      const uint8_t* pixels[16];
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t y = y0 + i / 4, x = x0 + i % 4;
        const bool inside = y >= 0 && y < image.in_h && x >= 0 && x < image.in_w;
        pixels[i] =
            inside ? static_cast<const uint8_t*>(call.x) + ((n * image.in_h + y) * image.in_w + x) * in : padding;
      }
      table.transform_input(pixels, in, types_.x_signed, v + t * in, count * in);
    }
    const int64_t row_tiles = ceil_div(count, gemm.rows);
    WinogradOutput o;
    o.m = m;
    o.tiles = count, o.first_tile = first;
    o.tiles_h = at.tiles_h, o.tiles_w = at.tiles_w;
    o.image = image;
    o.zero = call.y_zero, o.low = call.low, o.high = call.high;
    o.is_signed = call.output == Int8Output::s8;
    o.channels = out;
    for (int64_t panel = at.panels * part / columns; panel < at.panels * (part + 1) / columns; ++panel) {
      for (int64_t point = 0; point < kPoints; ++point) {
        const int16_t* const b = u + (panel * kPoints + point) * in * at.width;
        for (int64_t i = 0, row = 0; i < row_tiles; ++i) {
          const int64_t row_end = count * (i + 1) / row_tiles;
          const Tile tile{in / 2,  reinterpret_cast<const uint8_t*>(v + (point * count + row) * in),
                          in * 2,  reinterpret_cast<const int8_t*>(b),
                          0,       m + (point * count + row) * at.width,
                          at.width};
          gemm.wide_tile[row_end - row](tile);
          row = row_end;
        }
      }
      o.add = add + panel * at.width;
      o.scale = scale + panel * at.width;
      o.y = static_cast<uint8_t*>(call.y) + panel * at.width;
      table.transform_output(o);
    }
  });
}

}  // namespace epona
#endif
