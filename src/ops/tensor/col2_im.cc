#include <algorithm>

#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Col2Im: columns [N, C * block, blocks] put back into an image: overlapping blocks add up.
class Col2Im final : public Kernel {
 public:
  explicit Col2Im(const NodeInfo& info)
      : dilations_(info.ints("dilations")), pads_(info.ints("pads")), strides_(info.ints("strides")) {
    if (!contains(NumericTypes{}, info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    std::vector<int64_t> image = c.ints(1), block = c.ints(2);
    size_t dims = image.size();
    if (in.rank() != 3 || dims == 0 || block.size() != dims || wrong(dilations_, dims) || wrong(strides_, dims) ||
        wrong(pads_, 2 * dims))
      c.refuse("input of shape ", in, ", image_shape ", Shape(image), ", block_shape ", Shape(block),
               " and the attributes do not fit together");
    int64_t block_size = 1, blocks = 1;
    for (size_t i = 0; i < dims; ++i) {
      if (image[i] < 0 || block[i] < 1 || at(dilations_, i, 1) < 1 || at(strides_, i, 1) < 1)
        c.refuse("image_shape ", Shape(image), ", block_shape ", Shape(block),
                 ", dilations and strides must be positive");
      block_size = checked_mul(block_size, block[i]);
      int64_t reach = checked_add(checked_mul(at(dilations_, i, 1), block[i] - 1), 1);
      int64_t room = checked_add(checked_add(image[i], at(pads_, i, 0)), at(pads_, dims + i, 0)) - reach;
      blocks = checked_mul(blocks, room < 0 ? 0 : room / at(strides_, i, 1) + 1);
    }
    if (in[1] % block_size || in[2] != blocks)
      c.refuse("input of shape ", in, " must be [N, a multiple of ", block_size, ", ", blocks, "]");
    Shape out{in[0], in[1] / block_size};
    for (int64_t dim : image) out.push_back(dim);
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    dispatch(c.in(0).type, NumericTypes{}, [&]<class T>() { run_as<T>(c); });
  }

 private:
  static bool wrong(const std::vector<int64_t>& list, size_t wanted) { return !list.empty() && list.size() != wanted; }
  static int64_t at(const std::vector<int64_t>& list, size_t i, int64_t otherwise) {
    return list.empty() ? otherwise : list[i];
  }

  template <class T>
  void run_as(const RunContext& c) const {
    const Shape &in = c.in(0).shape, &out = c.out(0).shape;
    int dims = out.rank() - 2;
    Shape block(dims, 1), columns(dims, 1);
    for (int i = 0; i < dims; ++i) {
      auto k = static_cast<size_t>(i);
      block[i] = int_at(c.in(2), i);
      int64_t padded = out[2 + i] + at(pads_, k, 0) + at(pads_, k + static_cast<size_t>(dims), 0);
      columns[i] = (padded - at(dilations_, k, 1) * (block[i] - 1) - 1) / at(strides_, k, 1) + 1;
    }
    int64_t image = out.size(2, out.rank()), block_size = block.size(), count = in[2];
    const T* from = c.data<T>(0);
    T* to = c.out_data<T>(0);
    c.pool().parallel_for(in[0] * out[1], static_cast<double>(block_size * count) * 4, [&](int64_t begin, int64_t end) {
      Shape at_column(dims, 0);
      for (int64_t plane = begin; plane < end; ++plane) {
        T* pixels = to + plane * image;
        std::fill_n(pixels, image, T(0));
        for (int64_t b = 0; b < block_size; ++b) {
          const T* column = from + (plane * block_size + b) * count;
          std::fill(at_column.begin(), at_column.end(), 0);
          for (int64_t n = 0; n < count; ++n) {
            int64_t pixel = pixel_of(b, block, at_column, out);
            if (pixel >= 0) pixels[pixel] = static_cast<T>(pixels[pixel] + column[n]);
            for (int d = dims - 1; d >= 0 && ++at_column[d] == columns[d]; --d) at_column[d] = 0;
          }
        }
      }
    });
  }
  /// The pixel of element b of a block at a column position; -1 in the padding.
  int64_t pixel_of(int64_t b, const Shape& block, const Shape& column, const Shape& out) const {
    int64_t pixel = 0, step = 1;
    for (int i = block.rank() - 1; i >= 0; b /= block[i], --i) {
      auto k = static_cast<size_t>(i);
      int64_t x = column[i] * at(strides_, k, 1) - at(pads_, k, 0) + b % block[i] * at(dilations_, k, 1);
      if (x < 0 || x >= out[2 + i]) return -1;
      pixel += x * step;
      step *= out[2 + i];
    }
    return pixel;
  }

  std::vector<int64_t> dilations_, pads_, strides_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(col2_im) { r.add({.name = "Col2Im", .since = 18, .make = make_kernel<Col2Im>, .shape_inputs = 6}); }
