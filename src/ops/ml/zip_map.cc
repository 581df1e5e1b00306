#include "ops/ml/ml_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// ZipMap: every row of scores becomes a map from class label to score.
class ZipMap final : public Kernel {
 public:
  explicit ZipMap(const NodeInfo& info) {
    const auto strings = info.strings("classlabels_strings");
    const auto ints = info.ints("classlabels_int64s");
    if (strings.empty() == ints.empty())
      info.refuse(Code::invalid_graph, "one of classlabels_strings and classlabels_int64s should be given");
    keys_ = strings.empty() ? Tensor::of<int64_t>(Shape{static_cast<int64_t>(ints.size())}, ints)
                            : Tensor::of<std::string>(Shape{static_cast<int64_t>(strings.size())}, strings);
  }
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    const RowsOf size(c, x.shape);
    if (size.columns != keys_.size()) c.refuse("input has shape ", x.shape, " but there are ", keys_.size(), " labels");
    std::vector<RuntimeValue> maps;
    maps.reserve(static_cast<size_t>(size.rows));
    for (int64_t i = 0; i < size.rows; ++i) {
      std::span<const float> row(x.as<float>() + i * size.columns, static_cast<size_t>(size.columns));
      maps.push_back(RuntimeValue::of_map({keys_, Tensor::of<float>(Shape{size.columns}, row)}));
    }
    c.set(0, RuntimeValue::sequence(DataType::undefined, std::move(maps)));
  }

 private:
  Tensor keys_;  // shared by all maps
};

}  // namespace
}  // namespace epona

EPONA_OPS(zip_map) { r.add({.name = "ZipMap", .domain = "ai.onnx.ml", .make = make_kernel<ZipMap>, .dynamic = true}); }
