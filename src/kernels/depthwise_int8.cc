#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/conv_int8.h"
#include "kernels/conv_int8_tile.h"
#include "kernels/gemm_grid.h"
#include "kernels/parallel.h"

namespace epona {
namespace {

using namespace int8_detail;
using gemm_detail::ceil_div;
using gemm_detail::round_up;

int32_t byte_at(const void* values, int64_t i, bool is_signed) {
  return is_signed ? static_cast<const int8_t*>(values)[i] : static_cast<const uint8_t*>(values)[i];
}

/// Channels as the kernel takes them: images of fewer than a block are copied into whole blocks.
struct Blocks {
  int64_t width, channels, count;
  int order[64];

  explicit Blocks(int64_t c)
      : width(conv_int8_kernels().depthwise_block), channels(std::max(c, width)), count(ceil_div(channels, width)) {
    conv_int8_kernels().depthwise_order(order);
  }
  /// Calls fn(position, channel) for every element of the blocks.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (int64_t b = 0; b < count; ++b)
      for (int64_t i = 0; i < width; ++i) fn(b * width + i, std::min(b * width, channels - width) + order[i]);
  }
};

}  // namespace

DepthwiseInt8::DepthwiseInt8(const ConvParams& params, Int8ConvTypes types)
    : p_(params), types_(types), taps_(static_cast<int64_t>(params.kernel_h) * params.kernel_w) {}

// Packed: the weights less their zero points in pairs of taps, then the sums of each channel's weights.
size_t DepthwiseInt8::packed_bytes() const {
  const Blocks blocks(p_.in_channels);
  const int64_t elements = blocks.count * blocks.width;
  return static_cast<size_t>(round_up(elements * round_up(taps_, 2) * 2, 64) + elements * 4);
}

void DepthwiseInt8::pack(const void* weights, const void* zeros, int64_t zero_stride, void* packed) const {
  const Blocks blocks(p_.in_channels);
  const int64_t pairs = ceil_div(taps_, 2), elements = blocks.count * blocks.width;
  int16_t* const w = static_cast<int16_t*>(packed);
  int32_t* const sums = reinterpret_cast<int32_t*>(static_cast<uint8_t*>(packed) + round_up(elements * pairs * 4, 64));
  blocks.for_each([&](int64_t at, int64_t channel) {
    const bool real = channel < p_.in_channels;
    const int32_t zero = zeros && real ? byte_at(zeros, channel * zero_stride, types_.w_signed) : 0;
    int16_t* to = w + (at / blocks.width) * pairs * 2 * blocks.width + at % blocks.width * 2;
    int32_t sum = 0;
    for (int64_t tap = 0; tap < 2 * pairs; ++tap) {
      int32_t value = 0;
      if (real && tap < taps_) value = byte_at(weights, channel * taps_ + tap, types_.w_signed) - zero;
      sum += value;
      to[tap / 2 * 2 * blocks.width + tap % 2] = static_cast<int16_t>(value);
    }
    sums[at] = sum;
  });
}

size_t DepthwiseInt8::workspace_bytes(const ConvImage& image, int threads) const {
  const Blocks blocks(p_.in_channels);
  const int64_t elements = blocks.count * blocks.width;
  int64_t bytes = round_up(elements * 4, 64) * 2 + round_up(image.in_w * blocks.channels, 64);
  bytes += round_up(taps_ * static_cast<int64_t>(sizeof(void*)), 64) * threads;
  if (p_.in_channels < blocks.width) {
    bytes += round_up(image.batch * image.in_h * image.in_w * blocks.width, 64);
    bytes += round_up(image.batch * image.out_h * image.out_w * blocks.width, 64);
  }
  return static_cast<size_t>(bytes);
}

void DepthwiseInt8::run(const ConvImage& image, const Int8ConvCall& call, ThreadPool& pool) const {
  const int64_t out_pixels = image.batch * image.out_h * image.out_w;
  if (out_pixels <= 0) return;
  const Blocks blocks(p_.in_channels);
  const int64_t elements = blocks.count * blocks.width, pairs = ceil_div(taps_, 2), channels = blocks.channels;
  uint8_t* memory = static_cast<uint8_t*>(call.workspace);
  const auto take = [&](int64_t bytes) {
    uint8_t* const here = memory;
    memory += round_up(bytes, 64);
    return here;
  };
  int32_t* const add = reinterpret_cast<int32_t*>(take(elements * 4));
  float* const scale = reinterpret_cast<float*>(take(elements * 4));
  // A row of padding: rows outside the image are read as any other.
  uint8_t* const padding = take(image.in_w * channels);
  const int32_t* const sums =
      reinterpret_cast<const int32_t*>(static_cast<const uint8_t*>(call.packed) + round_up(elements * pairs * 4, 64));
  blocks.for_each([&](int64_t at, int64_t channel) {
    const bool real = channel < p_.in_channels;
    const uint32_t bias = call.bias && real ? static_cast<uint32_t>(call.bias[channel]) : 0u;
    add[at] = static_cast<int32_t>(bias - static_cast<uint32_t>(call.x_zero) * static_cast<uint32_t>(sums[at]));
    scale[at] = real ? call.scale[channel] * call.x_scale : 0.0f;
  });
  std::memset(padding, call.x_zero, static_cast<size_t>(image.in_w * channels));

  const int64_t table_bytes = round_up(taps_ * static_cast<int64_t>(sizeof(void*)), 64);
  uint8_t* const tables = take(table_bytes * pool.threads());
  const uint8_t* x = static_cast<const uint8_t*>(call.x);
  uint8_t* y = static_cast<uint8_t*>(call.y);
  const int64_t in_pixels = image.batch * image.in_h * image.in_w;
  if (p_.in_channels < blocks.width) {
    uint8_t* const wide = take(in_pixels * channels);
    for (int64_t i = 0; i < in_pixels; ++i) {
      std::memcpy(wide + i * channels, x + i * p_.in_channels, static_cast<size_t>(p_.in_channels));
      std::memset(wide + i * channels + p_.in_channels, 0, static_cast<size_t>(channels - p_.in_channels));
    }
    x = wide;
    y = take(out_pixels * channels);
  }

  DepthwiseInt8Row row{};
  row.channels = channels;
  row.taps_count = static_cast<int>(taps_);
  row.w = static_cast<const int16_t*>(call.packed);
  row.add = add;
  row.scale = scale;
  row.x_signed = types_.x_signed;
  row.y_signed = call.output == Int8Output::s8;
  row.zero = call.y_zero;
  row.low = call.low;
  row.high = call.high;
  const double ns = static_cast<double>(channels * image.out_w) * (0.1 + 0.03 * static_cast<double>(taps_));
  parallel_items(pool, image.batch * image.out_h, ns, [&](int slot, int64_t item) {
    const uint8_t** const taps = reinterpret_cast<const uint8_t**>(tables + slot * table_bytes);
    DepthwiseInt8Row part = row;
    part.taps = taps;
    const int64_t n = item / image.out_h, oy = item % image.out_h;
    part.step = p_.stride_w * channels;
    // Outputs whose taps all lie inside the image's columns form one run.
    const int64_t reach = static_cast<int64_t>(p_.kernel_w - 1) * p_.dilation_w;
    const int64_t inner = std::min(image.out_w, ceil_div(image.pad_left, p_.stride_w));
    const int64_t room = image.in_w - 1 - reach + image.pad_left;
    const int64_t inner_end = room < 0 ? inner : std::max(inner, std::min(image.out_w, room / p_.stride_w + 1));
    for (int64_t first = 0; first < image.out_w; first += part.pixels) {
      part.pixels = first == inner && inner_end > inner ? inner_end - inner : 1;
      const uint8_t** tap = taps;
      for (int kh = 0; kh < p_.kernel_h; ++kh) {
        const int64_t iy = oy * p_.stride_h - image.pad_top + static_cast<int64_t>(kh) * p_.dilation_h;
        const bool row_inside = iy >= 0 && iy < image.in_h;
        const uint8_t* const line = row_inside ? x + (n * image.in_h + iy) * image.in_w * channels : padding;
        for (int kw = 0; kw < p_.kernel_w; ++kw) {
          const int64_t ix = first * p_.stride_w - image.pad_left + static_cast<int64_t>(kw) * p_.dilation_w;
          *tap++ = ix >= 0 && ix < image.in_w ? line + ix * channels : padding;
        }
      }
      part.y = y + (item * image.out_w + first) * channels;
      conv_int8_kernels().depthwise(part);
    }
  });
  if (p_.in_channels == channels) return;
  for (int64_t i = 0; i < out_pixels; ++i)
    std::memcpy(static_cast<uint8_t*>(call.y) + i * p_.in_channels, y + i * channels,
                static_cast<size_t>(p_.in_channels));
}

}  // namespace epona
