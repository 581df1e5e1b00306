#pragma once
#include <vector>

#include "ops/nn/window.h"

namespace epona {

/// The attributes of ConvTranspose. Every input element adds its weighted kernel to the output at
/// i*stride + k*dilation - pad: the geometry is that of the convolution whose input is this output.
class TransposedWindow {
 public:
  explicit TransposedWindow(const NodeInfo& info);

  int64_t group() const { return group_; }
  const std::vector<int64_t>& kernel() const { return window_.kernel; }
  /// `out` is the input's size and `in` the output's. Throws, naming the node, when attributes and shapes do not fit.
  Window geometry(const Node& node, const Shape& x, const Shape& weights) const;

 private:
  WindowAttributes window_;
  int64_t group_;
  std::vector<int64_t> output_padding_, output_shape_;
};

}  // namespace epona
