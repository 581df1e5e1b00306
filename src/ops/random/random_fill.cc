#include <algorithm>

#include "ops/convert.h"
#include "ops/random/random_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// RandomNormal, RandomUniform and their Like variants, which take the shape from their input.
template <bool kNormal>
class RandomFill final : public Kernel {
 public:
  explicit RandomFill(const NodeInfo& info) : source_(info), shape_(info.ints("shape")) {
    scale_ = kNormal ? info.attr("scale", 1.0f) : info.attr("high", 1.0f) - info.attr("low", 0.0f);
    shift_ = kNormal ? info.attr("mean", 0.0f) : info.attr("low", 0.0f);
    if (!is_float(info.out_type(0))) info.refuse(Code::not_implemented, "output type ", info.out_type(0));
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.has(0) ? c.in(0) : shape_); }
  void run(const RunContext& c) const override {
    Tensor& y = c.out(0);
    const RandomStream stream = source_.next();
    const int64_t size = y.size(), blocks = (size + kConvertBlock - 1) / kConvertBlock;
    c.pool().parallel_for(blocks, kConvertBlock * 20.0, [&](int64_t first, int64_t last) {
      double values[kConvertBlock];
      for (int64_t block = first; block < last; ++block) {
        const int64_t begin = block * kConvertBlock, n = std::min(kConvertBlock, size - begin);
        for (int64_t i = 0; i < n; ++i)
          values[i] = shift_ + scale_ * (kNormal ? stream.normal(begin + i) : stream.uniform(begin + i));
        char* to = static_cast<char*>(y.data) + static_cast<size_t>(begin) * type_bits(y.type) / 8;
        convert_elements(DataType::float64, values, y.type, to, 0, n);
      }
    });
  }

 private:
  RandomSource source_;
  Shape shape_;
  double scale_, shift_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(random_fill) {
  for (const char* name : {"RandomNormal", "RandomNormalLike"})
    r.add({.name = name, .make = make_kernel<RandomFill<true>>, .random = true});
  for (const char* name : {"RandomUniform", "RandomUniformLike"})
    r.add({.name = name, .make = make_kernel<RandomFill<false>>, .random = true});
}
