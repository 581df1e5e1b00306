#pragma once
#include "ops/kernel.h"
#include "ops/nn/window.h"

namespace epona {

/// The convolution of 8-bit integers less their zero points that ConvInteger and QLinearConv share. Padding counts as
/// the zero point, that is as zero.
class IntegerConv {
 public:
  /// Positions of the inputs in the node.
  struct Inputs {
    int x, x_zero, w, w_zero;
  };
  IntegerConv(const NodeInfo& info, Inputs inputs);

  /// Checks the shapes; gives the output's shape and the bytes of scratch that run() needs.
  Shape shape(const ShapeContext& c, size_t& workspace) const;
  /// Calls fn(channel, plane, sums) with the 32-bit sums of every plane (batch entry and output channel; `plane` counts
  /// them) from several threads. `sums` lie where out(plane) says.
  void run(const RunContext& c, void* workspace, FunctionRef<int32_t*(int64_t plane)> out,
           FunctionRef<void(int64_t channel, int64_t plane, const int32_t* sums)> fn) const;
  int64_t plane_size(const Shape& y) const { return y.size(2, y.rank()); }

 private:
  WindowAttributes window_;
  int64_t group_;
  Inputs in_;
};

}  // namespace epona
