#include "kernels/conv_cost.h"

#include <algorithm>

#include "kernels/isa.h"

namespace epona {
namespace {

constexpr double kStreamBytesPerNs = 12;       // weights from L3 or memory, prefetched
constexpr double kTransformNsPerFloat = 0.15;  // of the transformed tiles, in and out
constexpr int64_t kUnknownSize = 64;
// Weights of F(4, 3) beyond this size would make a network of wide layers 2.3 times larger than F(2, 3) does, for a gain
// of a fifth.
constexpr int64_t kLargestFilter4 = 12 << 20;

double macs_per_ns() {
  switch (isa()) {
    case Isa::sse2:
      return 10;
    case Isa::avx2:
      return 42;
    default:
      return 85;
  }
}

double winograd_ns(const ConvParams& p, int m, int64_t out_h, int64_t out_w) {
  const int64_t down = (out_h + m - 1) / m, across = (out_w + m - 1) / m;
  const double tiles = static_cast<double>(down) * static_cast<double>(across);
  const double points = (m + 2) * (m + 2), channels = static_cast<double>(p.in_channels * p.out_channels);
  // Less than a full register tile of pixels wastes the rest of it.
  const double product = std::max(tiles, 3.0) * points * channels / macs_per_ns();
  const double weights = points * channels * 4 / kStreamBytesPerNs;
  return std::max(product, weights) +
         tiles * points * static_cast<double>(p.in_channels + p.out_channels) * kTransformNsPerFloat;
}

}  // namespace

ConvAlgorithm choose_conv_algorithm(const ConvParams& p, int64_t out_h, int64_t out_w) {
  if (!ConvWinograd::supports(p) || p.in_channels < 8 || p.out_channels < 8) return ConvAlgorithm::direct;
  if (out_h <= 0) out_h = kUnknownSize;
  if (out_w <= 0) out_w = kUnknownSize;
  const double macs = static_cast<double>(out_h * out_w * 9 * p.in_channels * p.out_channels);
  const double direct =
      std::max(macs / macs_per_ns(), 36 * static_cast<double>(p.in_channels * p.out_channels) / kStreamBytesPerNs);
  const double two = winograd_ns(p, 2, out_h, out_w);
  // F(4, 3) has more than twice the weights of F(2, 3) and larger rounding errors: it has to be worth it.
  const double four = winograd_ns(p, 4, out_h, out_w) * 1.1;
  if (direct <= std::min(two, four)) return ConvAlgorithm::direct;
  if (36 * 4 * p.in_channels * p.out_channels > kLargestFilter4) return ConvAlgorithm::winograd2;
  return two <= four ? ConvAlgorithm::winograd2 : ConvAlgorithm::winograd4;
}

}  // namespace epona
