#pragma once
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/conv.h"
#include "kernels/gemm_int8.h"

namespace epona {

/// The types of one convolution of 8-bit images.
struct Int8ConvTypes {
  bool x_signed = false, w_signed = true;
};

/// One call. Images are NHWC. With s = sum of (x - x_zero) (w - w_zero) + bias, exact in 32 bits (wrapping):
///   s32:    y = s
///   f32:    y = activation(s * scale * x_scale + shift)
///   u8, s8: y = clamp(round_half_even(s * scale * x_scale) + y_zero, low, high)
struct Int8ConvCall {
  const void* x = nullptr;
  int32_t x_zero = 0;
  float x_scale = 1;
  const void* packed = nullptr;  ///< what pack() wrote
  const int32_t* bias = nullptr;
  Int8Output output = Int8Output::u8;
  void* y = nullptr;
  const float* scale = nullptr;  ///< per output channel
  const float* shift = nullptr;  ///< per output channel, may be null; f32 only
  Activation activation;         ///< f32 only
  int32_t y_zero = 0, low = 0, high = 255;
  void* workspace = nullptr;  ///< workspace_bytes(), 64-byte aligned
};

/// Any 2-D convolution as products of matrices: rows of A are gathered from the image a block at a time. Padding counts
/// as the zero point.
class ConvInt8 {
 public:
  ConvInt8(const ConvParams& params, Int8ConvTypes types);

  size_t packed_bytes() const;
  /// Weights [O, I / groups, kh, kw]; zero points: null, one (stride 0) or one for each output channel (stride 1).
  void pack(const void* weights, const void* zeros, int64_t zero_stride, void* packed) const;
  size_t workspace_bytes(const ConvImage& image, int threads) const;
  void run(const ConvImage& image, const Int8ConvCall& call, ThreadPool& pool) const;

 private:
  struct Layout;
  struct Group;
  void run_group(const ConvImage& image, const Int8ConvCall& call, int64_t group, ThreadPool& pool) const;

  ConvParams p_;
  Int8ConvTypes types_;
  int64_t depth_, in_group_, out_group_;  // depth: terms of one sum
};

/// Winograd's F(2, 3) in integers, exact: 3x3, stride 1, undilated, groups = 1, with u8 or s8 output. 2.25 times fewer
/// multiplications of 16 bits; not for processors that multiply bytes four at a time.
class WinogradInt8 {
 public:
  /// `zeros`: the weights have zero points.
  static bool supports(const ConvParams& params, Int8ConvTypes types, bool zeros);
  WinogradInt8(const ConvParams& params, Int8ConvTypes types) : p_(params), types_(types) {}

  size_t packed_bytes() const;
  void pack(const void* weights, const void* zeros, int64_t zero_stride, void* packed) const;
  size_t workspace_bytes(const ConvImage& image, int threads) const;
  void run(const ConvImage& image, const Int8ConvCall& call, ThreadPool& pool) const;

 private:
  ConvParams p_;
  Int8ConvTypes types_;
};

/// Depthwise convolution, groups = input channels = output channels, with u8 or s8 output.
class DepthwiseInt8 {
 public:
  DepthwiseInt8(const ConvParams& params, Int8ConvTypes types);
  static bool supports(const ConvParams& params) {
    return params.groups == params.in_channels && params.groups == params.out_channels && params.groups > 1;
  }

  size_t packed_bytes() const;
  void pack(const void* weights, const void* zeros, int64_t zero_stride, void* packed) const;
  size_t workspace_bytes(const ConvImage& image, int threads) const;
  void run(const ConvImage& image, const Int8ConvCall& call, ThreadPool& pool) const;

 private:
  ConvParams p_;
  Int8ConvTypes types_;
  int64_t taps_;
};

}  // namespace epona
