#include <algorithm>

#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// CenterCropPad: crops or pads with zeros around the centre to the given sizes; an odd number goes to the end.
class CenterCropPad final : public Kernel {
 public:
  explicit CenterCropPad(const NodeInfo& info) : axes_(info.ints("axes")), has_axes_(info.has_attr("axes")) {}
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    std::vector<int64_t> sizes = c.ints(1);
    int64_t count = has_axes_ ? static_cast<int64_t>(axes_.size()) : out.rank();
    if (static_cast<int64_t>(sizes.size()) != count) c.refuse(sizes.size(), " sizes for ", count, " axes");
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] < 0) c.refuse("negative size ", sizes[i]);
      out[resolve_axis(c, has_axes_ ? axes_[i] : static_cast<int64_t>(i), out.rank())] = sizes[i];
    }
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    static constexpr uint64_t kZero[2] = {0, 0};
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    Shape in_strides = row_major_strides(in.shape), out_strides = row_major_strides(out.shape);
    const std::string empty;
    bool pads = false;
    int64_t from = 0, to = 0;
    StridedCopy copy(in.type);
    for (int i = 0; i < in.shape.rank(); ++i) {
      int64_t a = in.shape[i], b = out.shape[i];
      pads = pads || a < b;
      if (a > b) from += (a - b) / 2 * in_strides[i];
      if (a < b) to += (b - a) / 2 * out_strides[i];
      copy.dim(std::min(a, b), in_strides[i], out_strides[i]);
    }
    if (pads)
      fill_elements(out.type, out.size(), out.type == DataType::string ? static_cast<const void*>(&empty) : kZero,
                    out.data);
    copy.run(c.pool(), in.data, from, out.data, to);
  }

 private:
  std::vector<int64_t> axes_;
  bool has_axes_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(center_crop_pad) {
  r.add({.name = "CenterCropPad", .since = 18, .make = make_kernel<CenterCropPad>, .shape_inputs = 2});
}
