#include "kernels/strided_copy.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// DepthToSpace: channels become blocks of pixels. DCR: channel = (block row, block column, depth); CRD: depth first.
class DepthToSpace final : public Kernel {
 public:
  explicit DepthToSpace(const NodeInfo& info) : block_(info.attr("blocksize", 0)) {
    std::string mode = info.attr("mode", "DCR");
    if (mode != "DCR" && mode != "CRD") info.refuse(Code::invalid_graph, "unknown mode '", mode, "'");
    if (block_ < 1) info.refuse(Code::invalid_graph, "blocksize must be positive, found ", block_);
    depth_first_ = mode == "CRD";
  }
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    int64_t square = checked_mul(block_, block_);
    if (in.rank() != 4 || in[1] % square)
      c.refuse("the input must be [N,C,H,W] with C a multiple of ", square, ", found ", in);
    c.out(0, {in[0], in[1] / square, checked_mul(in[2], block_), checked_mul(in[3], block_)});
  }
  void run(const RunContext& c) const override {
    const Shape &in = c.in(0).shape, &out = c.out(0).shape;
    int64_t depth = out[1], plane = in[2] * in[3];
    int64_t depth_stride = depth_first_ ? block_ * block_ * plane : plane;
    int64_t column_stride = depth_first_ ? plane : depth * plane, row_stride = column_stride * block_;
    StridedCopy copy(c.in(0).type);
    copy.dim(in[0], in[1] * plane, in[1] * plane);
    copy.dim(depth, depth_stride, out[2] * out[3]);
    copy.dim(in[2], in[3], block_ * out[3]);
    copy.dim(block_, row_stride, out[3]);
    copy.dim(in[3], 1, block_);
    copy.dim(block_, column_stride, 1);
    copy.run(c.pool(), c.in(0).data, 0, c.out(0).data, 0);
  }

 private:
  int64_t block_;
  bool depth_first_;
};

/// SpaceToDepth: blocks of pixels become channels (block row, block column, depth).
class SpaceToDepth final : public Kernel {
 public:
  explicit SpaceToDepth(const NodeInfo& info) : block_(info.attr("blocksize", 0)) {
    std::string mode = info.attr("mode", "DCR");
    if (mode != "DCR" && mode != "CRD") info.refuse(Code::invalid_graph, "unknown mode '", mode, "'");
    if (block_ < 1) info.refuse(Code::invalid_graph, "blocksize must be positive, found ", block_);
    depth_first_ = mode == "CRD";
  }
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    if (in.rank() != 4 || in[2] % block_ || in[3] % block_)
      c.refuse("the input must be [N,C,H,W] with H and W multiples of ", block_, ", found ", in);
    c.out(0, {in[0], checked_mul(in[1], checked_mul(block_, block_)), in[2] / block_, in[3] / block_});
  }
  void run(const RunContext& c) const override {
    const Shape &in = c.in(0).shape, &out = c.out(0).shape;
    int64_t depth = in[1], plane = out[2] * out[3];
    int64_t depth_stride = depth_first_ ? block_ * block_ * plane : plane;
    int64_t column_stride = depth_first_ ? plane : depth * plane;
    StridedCopy copy(c.in(0).type);
    copy.dim(in[0], depth * in[2] * in[3], out[1] * plane);
    copy.dim(block_, in[3], column_stride * block_);
    copy.dim(block_, 1, column_stride);
    copy.dim(depth, in[2] * in[3], depth_stride);
    copy.dim(out[2], block_ * in[3], out[3]);
    copy.dim(out[3], block_, 1);
    copy.run(c.pool(), c.in(0).data, 0, c.out(0).data, 0);
  }

 private:
  int64_t block_;
  bool depth_first_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(depth_to_space) {
  r.add({.name = "DepthToSpace", .since = 1, .make = make_kernel<DepthToSpace>});
  r.add({.name = "SpaceToDepth", .since = 1, .make = make_kernel<SpaceToDepth>});
}
