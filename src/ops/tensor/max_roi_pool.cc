#include <algorithm>
#include <cmath>

#include "ops/dispatch.h"
#include "ops/registry.h"

namespace epona {
namespace {

using RoiTypes = Types<float, double, Float16>;

/// MaxRoiPool: the largest element in each cell of each region (rows of [batch, x1, y1, x2, y2], ends included).
class MaxRoiPool final : public Kernel {
 public:
  explicit MaxRoiPool(const NodeInfo& info)
      : pooled_(info.ints("pooled_shape")), scale_(info.attr("spatial_scale", 1.0f)) {
    if (pooled_.size() != 2 || pooled_[0] < 1 || pooled_[1] < 1)
      info.refuse(Code::invalid_graph, "pooled_shape must be two positive numbers");
    if (!contains(RoiTypes{}, info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape &in = c.in(0), &rois = c.in(1);
    if (in.rank() != 4 || rois.rank() != 2 || rois[1] != 5)
      c.refuse("input of shape ", in, " or rois of shape ", rois, " (wanted [n,5]) does not fit");
    c.out(0, {rois[0], in[1], pooled_[0], pooled_[1]});
  }
  void run(const RunContext& c) const override {
    dispatch(c.in(0).type, RoiTypes{}, [&]<class T>() { run_as<T>(c); });
  }

 private:
  template <class T>
  void run_as(const RunContext& c) const {
    const Shape& in = c.in(0).shape;
    T* out = c.out_data<T>(0);
    for (int64_t n = 0; n < c.in(1).shape[0]; ++n) {
      const T* roi = c.data<T>(1) + n * 5;
      auto round = [&](T v) {
        double x = std::round(static_cast<double>(v) * scale_);
        if (!(std::abs(x) < 1e9)) c.refuse("region ", n, " lies at ", x);
        return static_cast<int64_t>(x);
      };
      double batch = static_cast<double>(roi[0]);
      if (!(batch >= 0 && batch < static_cast<double>(in[0]))) c.refuse("batch index ", batch, " is out of range");
      int64_t left = round(roi[1]), top = round(roi[2]), right = round(roi[3]), bottom = round(roi[4]);
      double cell_width = static_cast<double>(std::max<int64_t>(right - left + 1, 1)) / static_cast<double>(pooled_[1]);
      double cell_height =
          static_cast<double>(std::max<int64_t>(bottom - top + 1, 1)) / static_cast<double>(pooled_[0]);
      auto edge = [](double x, int64_t begin, int64_t length) {
        return std::clamp<int64_t>(static_cast<int64_t>(x) + begin, 0, length);
      };
      for (int64_t ch = 0; ch < in[1]; ++ch) {
        const T* image = c.data<T>(0) + (static_cast<int64_t>(batch) * in[1] + ch) * in[2] * in[3];
        for (int64_t ph = 0; ph < pooled_[0]; ++ph)
          for (int64_t pw = 0; pw < pooled_[1]; ++pw) {
            int64_t y1 = edge(std::floor(static_cast<double>(ph) * cell_height), top, in[2]);
            int64_t y2 = edge(std::ceil(static_cast<double>(ph + 1) * cell_height), top, in[2]);
            int64_t x1 = edge(std::floor(static_cast<double>(pw) * cell_width), left, in[3]);
            int64_t x2 = edge(std::ceil(static_cast<double>(pw + 1) * cell_width), left, in[3]);
            T best = y1 < y2 && x1 < x2 ? image[y1 * in[3] + x1] : T(0);
            for (int64_t y = y1; y < y2; ++y)
              for (int64_t x = x1; x < x2; ++x)
                if (image[y * in[3] + x] > best) best = image[y * in[3] + x];
            *out++ = best;
          }
      }
    }
  }

  std::vector<int64_t> pooled_;
  float scale_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(max_roi_pool) { r.add({.name = "MaxRoiPool", .since = 1, .make = make_kernel<MaxRoiPool>}); }
