#include <optional>
#include <variant>

#include "base/weight_memory.h"
#include "kernels/conv.h"
#include "kernels/conv_cost.h"
#include "ops/nn/window.h"
#include "passes/activation_attribute.h"
#include "passes/nchwc.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// ConvNchwc(x, weights, bias?, residual?): a convolution whose output, and input unless attribute `input_nchw` is 1,
/// is in NCHW16c. Weights [O, I / group, ...] and bias are constants in ONNX's layout. y = activation(conv + bias +
/// residual); ConvNchwcThenAdd: activation(conv + bias) + residual. One or two spatial dims.
class ConvNchwc final : public Kernel {
 public:
  explicit ConvNchwc(const NodeInfo& info) : window_(info), from_planes_(info.attr("input_nchw", 0) != 0) {
    const Tensor* w = info.constant(1);
    const Tensor* bias = info.constant(2);
    if (!w || (info.has(2) && !bias)) info.refuse(Code::invalid_graph, "weights and bias should be constants");
    kernel_ = Shape(w->shape.dims().subspan(2));
    params_.groups = info.attr("group", 1);
    params_.in_channels = w->shape[1] * params_.groups;
    params_.out_channels = w->shape[0];
    params_.activation = read_activation(info);
    params_.residual_last = info.node().op == "ConvNchwcThenAdd";
    const Shape2 kernel = Shape2::of(kernel_, 1), stride = Shape2::of(Shape(window_.strides), 1);
    const Shape2 dilation = Shape2::of(Shape(window_.dilations), 1);
    params_.kernel_h = static_cast<int>(kernel.h), params_.kernel_w = static_cast<int>(kernel.w);
    params_.stride_h = static_cast<int>(stride.h), params_.stride_w = static_cast<int>(stride.w);
    params_.dilation_h = static_cast<int>(dilation.h), params_.dilation_w = static_cast<int>(dilation.w);
    Tensor weights = widen_groups(*w);
    choose(info);
    if (params_.kernel_w == 1) turn();
    std::visit(
        [&](auto& conv) {
          packed_ = allocate_weights(conv.packed_floats() * sizeof(float));
          conv.pack(weights.as<float>(), bias ? bias->as<float>() : nullptr, static_cast<float*>(packed_.get()));
        },
        *conv_);
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    const ConvImage image = image_of(x, c.node());
    Shape y{x[0], channel_blocks(params_.out_channels)};
    if (kernel_.rank() == 2) y.push_back(image.out_h);
    y.push_back(image.out_w);
    y.push_back(kChannelBlock);
    if (c.has(3) && !(c.in(3) == y)) c.refuse("residual has shape ", c.in(3), "; expected ", y);
    const bool turned = is_column(image);
    c.workspace(std::visit([&](auto& conv) { return conv.workspace_bytes(turned ? turn(image) : image, c.threads()); },
                           turned ? *turned_ : *conv_));
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    ConvImage image = image_of(c.in(0).shape, c.node());
    const bool turned = is_column(image);
    if (turned) image = turn(image);
    const auto* packed = static_cast<const float*>(packed_.get());
    const ConvBuffers buffers{c.data<float>(0), packed, c.data<float>(3), c.out_data<float>(0), c.workspace()};
    std::visit([&](auto& conv) { conv.run(image, buffers, c.pool()); }, turned ? *turned_ : *conv_);
  }

  bool reads_constant(int input) const override { return input == 0 || input == 3; }

 private:
  using Algorithm = std::variant<ConvDirect, ConvWinograd, ConvDepthwise, ConvStem>;

  ConvImage image_of(const Shape& x, const Node& node) const {
    const Window w = slide(window_, node, x, kernel_);
    const Shape2 in = Shape2::of(w.in, 1), out = Shape2::of(w.out, 1), pad = Shape2::of(w.pad, 0);
    return {x[0], in.h, in.w, out.h, out.w, pad.h, pad.w};
  }

  /// An image of one column is one row in memory as well, and so are its filters: the tiles run along rows.
  bool is_column(const ConvImage& image) const {
    return turned_ && image.in_w == 1 && image.out_w == 1 && image.pad_left == 0 && image.out_h > 1;
  }
  static ConvImage turn(const ConvImage& image) {
    return {image.batch, 1, image.in_h, 1, image.out_h, 0, image.pad_top};
  }
  void turn() {
    ConvParams turned = params_;
    std::swap(turned.kernel_h, turned.kernel_w);
    std::swap(turned.stride_h, turned.stride_w);
    std::swap(turned.dilation_h, turned.dilation_w);
    std::visit(
        [&]<class Conv>(const Conv&) {
          if constexpr (!std::is_same_v<Conv, ConvWinograd>) turned_.emplace(Conv(turned));
        },
        *conv_);
  }

  /// Groups of fewer than 16 channels become groups of 16 with zeros where channels of different groups would meet.
  Tensor widen_groups(const Tensor& w) {
    if (params_.groups == 1 || ConvDepthwise::supports(params_) || ConvDirect::supports(params_)) return w;
    const int64_t in_group = params_.in_channels / params_.groups, out_group = params_.out_channels / params_.groups;
    const int64_t merged = merged_groups(params_.in_channels, params_.out_channels, params_.groups);
    const int64_t taps = kernel_.size();
    Tensor wide = Tensor::allocate(DataType::float32, Shape{params_.out_channels, in_group * merged * taps});
    std::fill_n(wide.as<float>(), wide.size(), 0.0f);
    for (int64_t o = 0; o < params_.out_channels; ++o) {
      const int64_t place = o / out_group % merged;
      std::copy_n(w.as<float>() + o * in_group * taps, in_group * taps,
                  wide.as<float>() + (o * merged + place) * in_group * taps);
    }
    params_.groups /= merged;
    return wide;
  }

  void choose(const NodeInfo& info) {
    if (from_planes_) {
      conv_.emplace(ConvStem(params_));
      return;
    }
    if (ConvDepthwise::supports(params_)) {
      conv_.emplace(ConvDepthwise(params_));
      return;
    }
    int64_t out_h = 0, out_w = 0;
    if (auto x = info.in(0).static_shape()) {
      const ConvImage image = image_of(*x, info.node());
      out_h = image.out_h, out_w = image.out_w;
    }
    switch (choose_conv_algorithm(params_, out_h, out_w)) {
      case ConvAlgorithm::direct:
        conv_.emplace(ConvDirect(params_));
        break;
      case ConvAlgorithm::winograd2:
        conv_.emplace(ConvWinograd(params_, 2));
        break;
      case ConvAlgorithm::winograd4:
        conv_.emplace(ConvWinograd(params_, 4));
        break;
    }
  }

  WindowAttributes window_;
  Shape kernel_;
  bool from_planes_;
  ConvParams params_;
  std::optional<Algorithm> conv_, turned_;
  std::shared_ptr<void> packed_;
};

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(conv_nchwc) {
  r.add_internal({.name = "ConvNchwc", .make = make_kernel<ConvNchwc>, .inplace = 1u << 3});
  r.add_internal({.name = "ConvNchwcThenAdd", .make = make_kernel<ConvNchwc>});
}
