#include <algorithm>
#include <cstring>

#include "kernels/conv.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// ConcatNchwc(x..., channels): images in NCHW16c joined along channels, where blocks of 16 do not stay whole. (Where
/// they do, an ordinary Concat on axis 1 is the same.)
class ConcatNchwc final : public Kernel {
 public:
  explicit ConcatNchwc(const NodeInfo& info) : channels_(info.ints("channels")) {
    for (int64_t c : channels_) total_ += c;
  }

  void shapes(ShapeContext& c) const override {
    Shape y = c.in(0);
    for (int i = 1; i < c.inputs(); ++i) {
      Shape other = c.in(i);
      other[1] = y[1];
      if (!(other == y)) c.refuse("inputs of shapes ", c.in(0), " and ", c.in(i), " cannot be joined along channels");
    }
    y[1] = channel_blocks(total_);
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    const Shape& shape = c.out(0).shape;
    const int64_t blocks = shape[1], pixels = shape.size(2, shape.rank() - 1);
    float* y = c.out_data<float>(0);
    c.pool().parallel_for(shape[0] * blocks, 4.0 * static_cast<double>(pixels), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        fill(c, i / blocks, i % blocks, pixels, y + i * pixels * kChannelBlock);
      }
    });
  }

 private:
  /// One block of the output, from runs of channels that are neighbours in a block of an input.
  void fill(const RunContext& c, int64_t n, int64_t block, int64_t pixels, float* to) const {
    const int64_t first = block * kChannelBlock, last = std::min(first + kChannelBlock, total_);
    int64_t start = 0;  // of the current input, in channels of the output
    for (size_t i = 0; i < channels_.size() && start < last; start += channels_[i++]) {
      const int64_t in_blocks = channel_blocks(channels_[i]);
      const float* x = c.data<float>(static_cast<int>(i)) + n * in_blocks * pixels * kChannelBlock;
      for (int64_t at = std::max(first, start); at < std::min(last, start + channels_[i]);) {
        const int64_t channel = at - start, lane = channel % kChannelBlock;
        const int64_t run = std::min({last - at, kChannelBlock - lane, channels_[i] - channel});
        const float* from = x + channel / kChannelBlock * pixels * kChannelBlock + lane;
        float* out = to + (at - first);
        for (int64_t p = 0; p < pixels; ++p) {
          std::memcpy(out + p * kChannelBlock, from + p * kChannelBlock, static_cast<size_t>(run) * sizeof(float));
        }
        at += run;
      }
    }
    if (const int64_t real = last - first; real < kChannelBlock) {
      for (int64_t p = 0; p < pixels; ++p) {
        std::fill(to + p * kChannelBlock + real, to + (p + 1) * kChannelBlock, 0.0f);
      }
    }
  }

  std::vector<int64_t> channels_;
  int64_t total_ = 0;
};

/// ShapeNchwc(x, channels): what Shape, with its attributes, says of the image in ONNX's layout.
class ShapeNchwc final : public Kernel {
 public:
  explicit ShapeNchwc(const NodeInfo& info)
      : channels_(info.attr("channels", 0)), start_(info.attr("start", 0)), end_(info.attr("end", INT64_MAX)) {}

  void shapes(ShapeContext& c) const override {
    int64_t first, last;
    range(c.in(0).rank() - 1, first, last);
    c.out(0, Shape{last - first});
  }

  void run(const RunContext& c) const override {
    Shape x = c.in(0).shape;
    x[1] = channels_;
    int64_t first, last;
    range(x.rank() - 1, first, last);
    std::copy(x.begin() + first, x.begin() + last, c.out_data<int64_t>(0));
  }

 private:
  void range(int64_t rank, int64_t& first, int64_t& last) const {
    first = std::clamp<int64_t>(start_ < 0 ? start_ + rank : start_, 0, rank);
    last = std::clamp<int64_t>(end_ < 0 ? end_ + rank : end_, first, rank);
  }

  int64_t channels_, start_, end_;
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(concat_nchwc) {
  r.add_internal({.name = "ConcatNchwc", .make = make_kernel<ConcatNchwc>});
  r.add_internal({.name = "ShapeNchwc", .make = make_kernel<ShapeNchwc>, .shape_only = true});
}
