#pragma once
#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/activation.h"

namespace epona {

/// Channels of one block of the layout NCHW16c: a tensor [N, C, H, W] stored as [N, ceil(C / 16), H, W, 16], on every
/// instruction set. Channels past C hold unspecified values: kernels write them and never let them reach a real output.
inline constexpr int kChannelBlock = 16;
inline constexpr int64_t channel_blocks(int64_t channels) { return (channels + kChannelBlock - 1) / kChannelBlock; }

/// What a 2-D convolution is, whatever the size of the image. Channels are those of the whole tensors.
struct ConvParams {
  int64_t in_channels = 0, out_channels = 0, groups = 1;
  int kernel_h = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1;
  Activation activation;
  bool residual_last = false;  ///< activation(conv + bias) + residual instead of activation(conv + bias + residual)
};

/// The image of one call. Padding below and to the right follows from the output size.
struct ConvImage {
  int64_t batch = 1, in_h = 0, in_w = 0, out_h = 0, out_w = 0;
  int64_t pad_top = 0, pad_left = 0;
};

/// Buffers of one call. Activations and packed weights are 64-byte aligned; y may be the residual itself, but not with
/// residual_last.
struct ConvBuffers {
  const float* x = nullptr;
  const float* packed = nullptr;    ///< what pack() wrote
  const float* residual = nullptr;  ///< layout and size of y; may be null
  float* y = nullptr;
  void* workspace = nullptr;  ///< workspace_bytes(), 64-byte aligned
};

/// Direct convolution NCHW16c -> NCHW16c: any kernel, stride, dilation and padding; with groups > 1 both channel counts
/// of a group are multiples of 16.
class ConvDirect {
 public:
  explicit ConvDirect(const ConvParams& params);
  static bool supports(const ConvParams& params);

  size_t packed_floats() const;
  /// weights [O, I/groups, kh, kw]; bias [O] or null.
  void pack(const float* weights, const float* bias, float* packed) const;
  size_t workspace_bytes(const ConvImage& image, int threads) const;
  void run(const ConvImage& image, const ConvBuffers& buffers, ThreadPool& pool) const;

  const ConvParams& params() const { return p_; }

 private:
  struct Call;
  int64_t panel_floats(int blocks) const;
  void run_item(const Call& call, int64_t item, int slot) const;

  ConvParams p_;
  int64_t in_group_, out_blocks_;  // channels read by, and blocks written by, one group
  int panel_blocks_;               // blocks of 16 output channels that one pass over the input computes
};

/// Convolution of an image in NCHW, of few channels, into NCHW16c: the first layer of most networks. groups = 1.
class ConvStem {
 public:
  explicit ConvStem(const ConvParams& params);
  static bool supports(const ConvParams& params) { return params.groups == 1; }

  size_t packed_floats() const;
  void pack(const float* weights, const float* bias, float* packed) const;
  size_t workspace_bytes(const ConvImage& image, int threads) const;
  void run(const ConvImage& image, const ConvBuffers& buffers, ThreadPool& pool) const;

 private:
  struct Strips;
  ConvParams p_;
  int64_t out_blocks_, depth_;  // depth: input channels * filter taps
  int panel_blocks_;
};

/// Depthwise convolution in NCHW16c: groups = input channels = output channels.
class ConvDepthwise {
 public:
  explicit ConvDepthwise(const ConvParams& params);
  static bool supports(const ConvParams& params) {
    return params.groups == params.in_channels && params.groups == params.out_channels;
  }

  size_t packed_floats() const;
  void pack(const float* weights, const float* bias, float* packed) const;
  size_t workspace_bytes(const ConvImage&, int) const { return 0; }
  void run(const ConvImage& image, const ConvBuffers& buffers, ThreadPool& pool) const;

 private:
  ConvParams p_;
  int64_t blocks_;
};

/// Winograd's F(m, 3): 3x3, stride 1, undilated, groups = 1, NCHW16c -> NCHW16c. Tiles of m x m outputs, m = 2 or 4:
/// 2.25 or 4 times fewer multiplications, 1.8 or 4 times more weights, rounding errors 1-2 or about 5 times those of the
/// direct sum.
class ConvWinograd {
 public:
  ConvWinograd(const ConvParams& params, int m);
  static bool supports(const ConvParams& params);

  size_t packed_floats() const;
  void pack(const float* weights, const float* bias, float* packed) const;
  size_t workspace_bytes(const ConvImage& image, int threads) const;
  void run(const ConvImage& image, const ConvBuffers& buffers, ThreadPool& pool) const;

 private:
  struct Call;
  void transform_input(const Call& call, int64_t chunk, int64_t block, float* v) const;
  void multiply(const Call& call, int64_t chunk, int64_t panel, const float* v, float* m) const;

  ConvParams p_;
  int m_, points_;  // points: (m + 2)^2
  int64_t in_blocks_, out_blocks_;
  int panel_blocks_;
};

}  // namespace epona
