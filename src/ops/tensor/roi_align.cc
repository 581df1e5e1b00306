#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// RoiAlign: bilinear samples on a grid inside each cell of each region, averaged or (as the reference does) the
/// largest weighted corner of any sample.
class RoiAlign final : public Kernel {
 public:
  explicit RoiAlign(const NodeInfo& info)
      : height_(info.attr("output_height", 1)),
        width_(info.attr("output_width", 1)),
        sampling_(info.attr("sampling_ratio", 0)),
        scale_(info.attr("spatial_scale", 1.0f)) {
    std::string mode = info.attr("mode", "avg");
    std::string coordinates =
        info.attr("coordinate_transformation_mode", info.opset() < 16 ? "output_half_pixel" : "half_pixel");
    if (mode != "avg" && mode != "max") info.refuse(Code::invalid_graph, "unknown mode '", mode, "'");
    if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
      info.refuse(Code::invalid_graph, "unknown coordinate_transformation_mode '", coordinates, "'");
    if (height_ < 1 || width_ < 1 || sampling_ < 0 || !(scale_ > 0))
      info.refuse(Code::invalid_graph, "output_height, output_width and spatial_scale must be positive");
    max_ = mode == "max";
    half_pixel_ = coordinates == "half_pixel";
    if (!contains(FloatTypes{}, info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape &in = c.in(0), &rois = c.in(1), &batch = c.in(2);
    if (in.rank() != 4 || rois.rank() != 2 || rois[1] != 4 || batch.rank() != 1 || batch[0] != rois[0])
      c.refuse("input of shape ", in, ", rois of shape ", rois, " (wanted [n,4]) and batch_indices of shape ", batch,
               " do not fit together");
    c.out(0, {rois[0], in[1], height_, width_});
  }
  void run(const RunContext& c) const override {
    const Shape& in = c.in(0).shape;
    check_index_type(c, c.in(2), "batch_indices");
    for (int64_t i = 0; i < c.in(2).size(); ++i) {
      int64_t batch = int_at(c.in(2), i);
      if (batch < 0 || batch >= in[0]) c.refuse("batch index ", batch, " is out of range [0,", in[0] - 1, "]");
    }
    dispatch(c.in(0).type, FloatTypes{}, [&]<class T>() { run_as<T>(c); });
  }

 private:
  template <class T>
  struct Region {
    T x, y, cell_width, cell_height;
    int64_t across, down;  // samples in a cell
  };

  template <class T>
  void run_as(const RunContext& c) const {
    using F = Compute<T>;
    const Shape& in = c.in(0).shape;
    int64_t channels = in[1], plane = in[2] * in[3], cells = height_ * width_;
    const T* rois = c.data<T>(1);
    T* out = c.out_data<T>(0);
    c.pool().parallel_for(c.in(1).shape[0] * cells, static_cast<double>(channels) * 20,
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              int64_t roi = i / cells, cell = i % cells, row = cell / width_, column = cell % width_;
                              Region<F> region = region_of<F>(c, rois + roi * 4);
                              F x = region.x + static_cast<F>(column) * region.cell_width;
                              F y = region.y + static_cast<F>(row) * region.cell_height;
                              const T* image = c.data<T>(0) + int_at(c.in(2), roi) * channels * plane;
                              for (int64_t ch = 0; ch < channels; ++ch)
                                out[(roi * channels + ch) * cells + cell] =
                                    T(pool_cell<T, F>(image + ch * plane, in[2], in[3], x, y, region));
                            }
                          });
  }
  template <class F, class T>
  Region<F> region_of(const RunContext& c, const T* roi) const {
    F offset = half_pixel_ ? F(0.5) : F(0), scale = static_cast<F>(scale_);
    F x = roi[0] * scale - offset, y = roi[1] * scale - offset;
    F width = roi[2] * scale - offset - x, height = roi[3] * scale - offset - y;
    if (!half_pixel_) width = std::max(width, F(1)), height = std::max(height, F(1));
    Region<F> region{x, y, width / static_cast<F>(width_), height / static_cast<F>(height_), sampling_, sampling_};
    if (sampling_ == 0) {
      F across = std::ceil(region.cell_width), down = std::ceil(region.cell_height);
      if (!(std::max(across, down) < F(100000))) c.refuse("a region of size ", width, " x ", height, " is too large");
      region.across = std::max<int64_t>(0, static_cast<int64_t>(across));
      region.down = std::max<int64_t>(0, static_cast<int64_t>(down));
    }
    return region;
  }
  template <class T, class F>
  F pool_cell(const T* image, int64_t height, int64_t width, F x0, F y0, const Region<F>& region) const {
    F sum = 0, largest = -std::numeric_limits<F>::infinity();
    for (int64_t iy = 0; iy < region.down; ++iy) {
      for (int64_t ix = 0; ix < region.across; ++ix) {
        F y = y0 + (static_cast<F>(iy) + F(0.5)) * region.cell_height / static_cast<F>(region.down);
        F x = x0 + (static_cast<F>(ix) + F(0.5)) * region.cell_width / static_cast<F>(region.across);
        F part[4] = {0, 0, 0, 0};
        if (y >= -1 && y <= static_cast<F>(height) && x >= -1 && x <= static_cast<F>(width)) {
          int64_t top, left;
          F down = split(y, height, top), right = split(x, width, left);
          int64_t bottom = std::min(top + 1, height - 1), end = std::min(left + 1, width - 1);
          part[0] = (1 - down) * (1 - right) * static_cast<F>(image[top * width + left]);
          part[1] = (1 - down) * right * static_cast<F>(image[top * width + end]);
          part[2] = down * (1 - right) * static_cast<F>(image[bottom * width + left]);
          part[3] = down * right * static_cast<F>(image[bottom * width + end]);
        }
        sum += part[0] + part[1] + part[2] + part[3];
        largest = std::max(largest, std::max(std::max(part[0], part[1]), std::max(part[2], part[3])));
      }
    }
    if (region.down * region.across == 0) return 0;
    return max_ ? largest : sum / static_cast<F>(region.down * region.across);
  }
  /// The pixel at or before a coordinate, which is held inside; returns the part that goes to the next one.
  template <class F>
  static F split(F x, int64_t length, int64_t& first) {
    x = std::max(x, F(0));
    first = static_cast<int64_t>(x);
    if (first < length - 1) return x - static_cast<F>(first);
    first = length - 1;
    return 0;
  }

  int64_t height_, width_, sampling_;
  float scale_;
  bool max_ = false, half_pixel_ = true;
};

}  // namespace
}  // namespace epona

EPONA_OPS(roi_align) { r.add({.name = "RoiAlign", .since = 10, .make = make_kernel<RoiAlign>}); }
