#include <cstring>

#include "ops/registry.h"

namespace epona {
namespace {

/// ArrayFeatureExtractor: picks columns (positions in the last dim).
class ArrayFeatureExtractor final : public Kernel {
 public:
  explicit ArrayFeatureExtractor(const NodeInfo&) {}
  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    if (x.rank() == 0) c.refuse("input is a scalar");
    Shape z = x.rank() == 1 ? Shape{1, 0} : x;
    z[z.rank() - 1] = c.in(1).size();
    c.out(0, std::move(z));
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    const int64_t columns = x.shape.back(), picks = c.in(1).size(), rows = x.shape.size(0, x.shape.rank() - 1);
    const int64_t* index = c.data<int64_t>(1);
    for (int64_t j = 0; j < picks; ++j)
      if (index[j] < 0 || index[j] >= columns)
        c.refuse("index ", index[j], " is out of range for input of shape ", x.shape);
    switch (x.type == DataType::string ? 0 : type_bits(x.type)) {
      case 0:
        return pick<std::string>(c, rows, columns, picks, index);
      case 32:
        return pick<uint32_t>(c, rows, columns, picks, index);
      case 64:
        return pick<uint64_t>(c, rows, columns, picks, index);
      default:
        c.refuse("type ", x.type);
    }
  }

 private:
  template <class T>
  static void pick(const RunContext& c, int64_t rows, int64_t columns, int64_t picks, const int64_t* index) {
    const T* x = c.data<T>(0);
    T* z = c.out_data<T>(0);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < picks; ++j) z[i * picks + j] = x[i * columns + index[j]];
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(array_feature_extractor) {
  r.add({.name = "ArrayFeatureExtractor", .domain = "ai.onnx.ml", .make = make_kernel<ArrayFeatureExtractor>});
}
