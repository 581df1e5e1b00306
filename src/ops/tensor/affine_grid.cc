#include "ops/dispatch.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// AffineGrid: the sampling grid (for GridSample) of each affine matrix, over an image of the given size.
class AffineGrid final : public Kernel {
 public:
  explicit AffineGrid(const NodeInfo& info) : align_(info.attr("align_corners", 0) != 0) {
    if (!contains(FloatTypes{}, info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape& theta = c.in(0);
    std::vector<int64_t> size = c.ints(1);
    int64_t dims = static_cast<int64_t>(size.size()) - 2;
    bool fits = (dims == 2 || dims == 3) && theta.rank() == 3 && theta[0] == size[0] && theta[1] == dims &&
                theta[2] == dims + 1;
    if (!fits) c.refuse("theta of shape ", theta, " does not fit the size ", Shape(size));
    Shape out{size[0]};
    for (int64_t i = 0; i < dims; ++i) {
      if (size[2 + i] < 0) c.refuse("negative dimension in the size ", Shape(size));
      out.push_back(size[2 + i]);
    }
    out.push_back(dims);
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    dispatch(c.in(0).type, FloatTypes{}, [&]<class T>() { run_as<T>(c); });
  }

 private:
  template <class T>
  void run_as(const RunContext& c) const {
    const Shape& shape = c.out(0).shape;
    int dims = static_cast<int>(shape.back());
    int64_t points = shape.size(1, dims + 1);
    const T* theta = c.data<T>(0);
    T* out = c.out_data<T>(0);
    c.pool().parallel_for(shape[0] * points, 10, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const T* matrix = theta + p / points * dims * (dims + 1);
        double at[4] = {0, 0, 0, 1};
        int64_t rest = p % points;
        for (int d = dims; d >= 1; rest /= shape[d], --d) at[dims - d] = place(rest % shape[d], shape[d]);
        at[dims] = 1;
        for (int i = 0; i < dims; ++i) {
          double sum = 0;
          for (int j = 0; j <= dims; ++j) sum += static_cast<double>(matrix[i * (dims + 1) + j]) * at[j];
          out[p * dims + i] = static_cast<T>(static_cast<Compute<T>>(sum));
        }
      }
    });
  }
  /// Pixel i of n on [-1, 1]: at the ends of the pixels' centres, or of the pixels themselves.
  double place(int64_t i, int64_t n) const {
    double x = static_cast<double>(i), length = static_cast<double>(n);
    if (align_) return n == 1 ? -1 : -1 + 2 * x / (length - 1);
    return (2 * x + 1) / length - 1;
  }
  bool align_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(affine_grid) {
  r.add({.name = "AffineGrid", .since = 20, .make = make_kernel<AffineGrid>, .shape_inputs = 2});
}
