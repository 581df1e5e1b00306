#include <cmath>

#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

using CropTypes = Types<float, double, Float16>;

/// CropAndResize: each region (y1, x1, y2, x2 as shares of the image) resampled to one size.
class CropAndResize final : public Kernel {
 public:
  explicit CropAndResize(const NodeInfo& info) : outside_(info.attr("extrapolation_value", 0.0f)) {
    std::string mode = info.attr("mode", "bilinear");
    if (mode != "bilinear" && mode != "nearest") info.refuse(Code::invalid_graph, "unknown mode '", mode, "'");
    nearest_ = mode == "nearest";
    if (!contains(CropTypes{}, info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape &in = c.in(0), &rois = c.in(1), &batch = c.in(2);
    std::vector<int64_t> size = c.ints(3);
    if (in.rank() != 4 || rois.rank() != 2 || rois[1] != 4 || batch.rank() != 1 || batch[0] != rois[0] ||
        size.size() != 2)
      c.refuse("input of shape ", in, ", rois of shape ", rois, " (wanted [n,4]), batch_indices of shape ", batch,
               " and crop_size of ", size.size(), " numbers do not fit together");
    if (size[0] < 1 || size[1] < 1) c.refuse("crop_size must be positive, found ", Shape(size));
    c.out(0, {rois[0], in[1], size[0], size[1]});
  }
  void run(const RunContext& c) const override {
    dispatch(c.in(0).type, CropTypes{}, [&]<class T>() { run_as<T>(c); });
  }

 private:
  template <class T>
  void run_as(const RunContext& c) const {
    using F = Compute<T>;
    const Shape &in = c.in(0).shape, &out = c.out(0).shape;
    int64_t channels = in[1], plane = in[2] * in[3], cells = out[2] * out[3];
    for (int64_t r = 0; r < out[0]; ++r) {
      int64_t batch = int_at(c.in(2), r);
      if (batch < 0 || batch >= in[0]) c.refuse("batch index ", batch, " is out of range [0,", in[0] - 1, "]");
      const T* roi = c.data<T>(1) + r * 4;
      const T* image = c.data<T>(0) + batch * channels * plane;
      T* to = c.out_data<T>(0) + r * channels * cells;
      for (int64_t cell = 0; cell < cells; ++cell) {
        F y = place<F>(roi[0], roi[2], cell / out[3], out[2], in[2]);
        F x = place<F>(roi[1], roi[3], cell % out[3], out[3], in[3]);
        bool inside = y >= 0 && y <= static_cast<F>(in[2] - 1) && x >= 0 && x <= static_cast<F>(in[3] - 1);
        for (int64_t ch = 0; ch < channels; ++ch)
          to[ch * cells + cell] = inside ? T(sample<T, F>(image + ch * plane, in[3], y, x)) : T(outside_);
      }
    }
  }
  template <class F>
  static F place(F begin, F end, int64_t i, int64_t n, int64_t length) {
    F last = static_cast<F>(length - 1);
    if (n == 1) return F(0.5) * (begin + end) * last;
    return begin * last + static_cast<F>(i) * ((end - begin) * last / static_cast<F>(n - 1));
  }
  template <class T, class F>
  F sample(const T* image, int64_t width, F y, F x) const {
    if (nearest_) return image[static_cast<int64_t>(std::round(y)) * width + static_cast<int64_t>(std::round(x))];
    int64_t top = static_cast<int64_t>(std::floor(y)), bottom = static_cast<int64_t>(std::ceil(y));
    int64_t left = static_cast<int64_t>(std::floor(x)), right = static_cast<int64_t>(std::ceil(x));
    F down = y - static_cast<F>(top), across = x - static_cast<F>(left);
    F a = image[top * width + left], b = image[top * width + right];
    F d = image[bottom * width + left], e = image[bottom * width + right];
    F upper = a + (b - a) * across, lower = d + (e - d) * across;
    return upper + (lower - upper) * down;
  }

  float outside_;
  bool nearest_ = false;
};

}  // namespace
}  // namespace epona

EPONA_OPS(crop_and_resize) {
  r.add({.name = "CropAndResize", .domain = "com.microsoft", .make = make_kernel<CropAndResize>, .shape_inputs = 8});
}
