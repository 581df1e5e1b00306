#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include "base/weight_memory.h"
#include "kernels/conv_int8.h"
#include "ops/nn/window.h"
#include "passes/nchwc.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// QConvNhwc(x, w, scale, bias?, w_zero?): the convolution of a channels-last image of 8-bit integers with constant
/// 8-bit weights [O, I / group, ...], zero points one or one per channel, to 8-bit integers: y = clamp(round((sum + bias) *
/// scale[channel]) + y_zero, low, high). Attributes x_zero, y_zero, low, high and those of Conv. One or two
/// spatial dims.
class QConvNhwc final : public Kernel {
 public:
  explicit QConvNhwc(const NodeInfo& info) : window_(info) {
    const Tensor *w = info.constant(1), *scale = info.constant(2), *bias = info.constant(3), *zero = info.constant(4);
    if (!w || !scale || (info.has(3) && !bias) || (info.has(4) && !zero))
      info.refuse(Code::invalid_graph, "weights, scales, bias and zero points should be constants");
    kernel_ = Shape(w->shape.dims().subspan(2));
    ConvParams p;
    p.groups = info.attr("group", 1);
    p.in_channels = w->shape[1] * p.groups;
    p.out_channels = w->shape[0];
    const Shape2 kernel = Shape2::of(kernel_, 1), stride = Shape2::of(Shape(window_.strides), 1);
    const Shape2 dilation = Shape2::of(Shape(window_.dilations), 1);
    p.kernel_h = static_cast<int>(kernel.h), p.kernel_w = static_cast<int>(kernel.w);
    p.stride_h = static_cast<int>(stride.h), p.stride_w = static_cast<int>(stride.w);
    p.dilation_h = static_cast<int>(dilation.h), p.dilation_w = static_cast<int>(dilation.w);
    in_channels_ = p.in_channels, channels_ = p.out_channels;
    const Int8ConvTypes types{info.in_type(0) == DataType::int8, w->type == DataType::int8};
    scale_.assign(scale->as<float>(), scale->as<float>() + scale->size());
    if (bias) bias_.assign(bias->as<int32_t>(), bias->as<int32_t>() + bias->size());
    call_.output = info.out_type(0) == DataType::int8 ? Int8Output::s8 : Int8Output::u8;
    call_.x_zero = static_cast<int32_t>(info.attr("x_zero", 0));
    call_.y_zero = static_cast<int32_t>(info.attr("y_zero", 0));
    call_.low = static_cast<int32_t>(info.attr("low", 0));
    call_.high = static_cast<int32_t>(info.attr("high", 255));
    if (DepthwiseInt8::supports(p))
      conv_.emplace(DepthwiseInt8(p, types));
    else if (WinogradInt8::supports(p, types, zero != nullptr) && has_tiles(info))
      conv_.emplace(WinogradInt8(p, types));
    else
      conv_.emplace(ConvInt8(p, types));
    std::visit(
        [&](auto& conv) {
          packed_ = allocate_weights(conv.packed_bytes());
          conv.pack(w->data, zero ? zero->data : nullptr, zero && zero->size() > 1 ? 1 : 0, packed_.get());
        },
        *conv_);
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() != kernel_.rank() + 2 || x.back() != in_channels_)
      c.refuse("input ", x, " (channels last) does not fit weights for ", in_channels_, " channels");
    const ConvImage image = image_of(x, c.node());
    Shape y{x[0]};
    if (kernel_.rank() == 2) y.push_back(image.out_h);
    y.push_back(image.out_w);
    y.push_back(channels_);
    c.workspace(std::visit([&](auto& conv) { return conv.workspace_bytes(image, c.threads()); }, *conv_));
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    Int8ConvCall call = call_;
    call.x = c.in(0).data;
    call.packed = packed_.get();
    call.bias = bias_.empty() ? nullptr : bias_.data();
    call.scale = scale_.data();
    call.y = c.out(0).data;
    call.workspace = c.workspace();
    const ConvImage image = image_of(c.in(0).shape, c.node());
    std::visit([&](auto& conv) { conv.run(image, call, c.pool()); }, *conv_);
  }

  bool reads_constant(int input) const override { return input == 0; }

 private:
  /// Whether the image is large enough for Winograd's larger weights: few tiles (of 2 x 2) do not pay for reading them.
  bool has_tiles(const NodeInfo& info) const {
    constexpr int64_t kFewTiles = 32, kManyChannels = 256;
    const auto x = info.in(0).static_shape();
    if (!x || x->rank() != kernel_.rank() + 2) return in_channels_ <= kManyChannels;
    const ConvImage image = image_of(*x, info.node());
    return image.batch * ((image.out_h + 1) / 2) * ((image.out_w + 1) / 2) >= kFewTiles;
  }

  ConvImage image_of(const Shape& x, const Node& node) const {
    const Window w = slide(window_, node, x, kernel_, 1);
    const Shape2 in = Shape2::of(w.in, 1), out = Shape2::of(w.out, 1), pad = Shape2::of(w.pad, 0);
    return {x[0], in.h, in.w, out.h, out.w, pad.h, pad.w};
  }

  WindowAttributes window_;
  Shape kernel_;
  int64_t in_channels_, channels_;
  Int8ConvCall call_;
  std::vector<float> scale_;
  std::vector<int32_t> bias_;
  std::optional<std::variant<ConvInt8, DepthwiseInt8, WinogradInt8>> conv_;
  std::shared_ptr<void> packed_;
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(qconv_nhwc) { r.add_internal({.name = "QConvNhwc", .make = make_kernel<QConvNhwc>}); }
