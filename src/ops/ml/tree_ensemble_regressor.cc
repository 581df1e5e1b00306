#include <algorithm>
#include <limits>

#include "ops/float_io.h"
#include "ops/ml/forest.h"
#include "ops/ml/ml_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

enum class Aggregate : uint8_t { average, sum, min, max };

Aggregate aggregate_of(const NodeInfo& info, const std::string& name) {
  if (name == "AVERAGE") return Aggregate::average;
  if (name == "SUM") return Aggregate::sum;
  if (name == "MIN") return Aggregate::min;
  if (name == "MAX") return Aggregate::max;
  info.refuse(Code::invalid_graph, "aggregate_function is \"", name, "\"; expected AVERAGE, SUM, MIN or MAX");
}

/// TreeEnsembleRegressor and TreeEnsemble: per target the sum, mean, smallest or largest of the leaves reached.
template <class T>
class TreeEnsembleRegressor final : public Kernel {
 public:
  TreeEnsembleRegressor(const NodeInfo& info, bool by_index)
      : targets_(targets_of(info)),
        forest_(by_index ? forest_by_index(info, targets_) : forest_by_ids(info, "target", targets_)) {
    if (by_index) {
      const int64_t aggregate = info.attr("aggregate_function", 1), transform = info.attr("post_transform", 0);
      if (aggregate < 0 || aggregate > 3) info.refuse(Code::invalid_graph, "aggregate_function is ", aggregate);
      if (transform < 0 || transform > 4) info.refuse(Code::invalid_graph, "post_transform is ", transform);
      aggregate_ = static_cast<Aggregate>(aggregate);
      transform_ = static_cast<PostTransform>(transform);
    } else {
      aggregate_ = aggregate_of(info, info.attr("aggregate_function", "SUM"));
      transform_ = post_transform_of(info);
      for (double base : doubles_of(info, "base_values")) base_.push_back(static_cast<T>(base));
      if (!base_.empty() && static_cast<int64_t>(base_.size()) != targets_)
        info.refuse(Code::invalid_graph, "base_values has ", base_.size(), " entries for ", targets_, " targets");
    }
  }

  void shapes(ShapeContext& c) const override {
    const RowsOf size(c, c.in(0));
    if (forest_.max_feature() >= size.columns)
      c.refuse("the trees read feature ", forest_.max_feature(), " of an input of shape ", c.in(0));
    c.out(0, {size.rows, targets_});
    const size_t cells = static_cast<size_t>(checked_mul(size.rows, targets_));
    const bool half = c.in_type(0) == DataType::float16;
    c.workspace(FloatIo::align(cells * sizeof(T)) +
                type_bytes(data_type_of<T>, half || c.in_type(0) != data_type_of<T> ? c.in(0).size() : 0));
  }

  void run(const RunContext& c) const override {
    const RowsOf size(c, c.in(0).shape);
    T* sums = c.workspace_as<T>();
    const int64_t cells = size.rows * targets_;
    T* scratch = reinterpret_cast<T*>(c.workspace_as<char>() + FloatIo::align(static_cast<size_t>(cells) * sizeof(T)));
    const T* x = scratch;
    if (c.in(0).type == DataType::float16)
      convert_floats(DataType::float16, c.in(0).data, data_type_of<T>, scratch, c.in(0).size(), c.pool());
    else
      x = numbers_of<T>(c.in(0), scratch);
    constexpr int64_t kBlock = 64;  // rows that walk one tree while it is in the cache
    const int64_t blocks = (size.rows + kBlock - 1) / kBlock;
    double cost = 15.0 * static_cast<double>(forest_.trees()) * static_cast<double>(std::min(size.rows, kBlock));
    c.pool().parallel_for(blocks, cost, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kBlock, rows = std::min(kBlock, size.rows - first);
        sum_up(x + first * size.columns, rows, size.columns, sums + first * targets_);
        for (int64_t row = first; row < first + rows; ++row) finish(c.out(0), sums + row * targets_, row * targets_);
      }
    });
  }

 private:
  static int64_t targets_of(const NodeInfo& info) {
    const int64_t targets = info.attr("n_targets", 1);
    if (targets < 1 || targets > INT32_MAX) info.refuse(Code::invalid_graph, "n_targets is ", targets);
    return targets;
  }

  void sum_up(const T* x, int64_t rows, int64_t columns, T* sums) const {
    const bool least = aggregate_ == Aggregate::min, most = aggregate_ == Aggregate::max;
    const T start = least ? std::numeric_limits<T>::max() : most ? std::numeric_limits<T>::lowest() : T(0);
    std::fill_n(sums, rows * targets_, start);
    if (least || most)
      forest_.evaluate(x, rows, columns, [&](int64_t row, auto* vote, auto* last) {
        for (; vote != last; ++vote) {
          T& to = sums[row * targets_ + vote->target];
          to = least ? std::min(to, vote->weight) : std::max(to, vote->weight);
        }
      });
    else
      forest_.evaluate(x, rows, columns, [&](int64_t row, auto* vote, auto* last) {
        for (; vote != last; ++vote) sums[row * targets_ + vote->target] += vote->weight;
      });
  }

  void finish(Tensor& out, T* sums, int64_t offset) const {
    for (int64_t k = 0; k < targets_; ++k) {
      if (aggregate_ == Aggregate::average) sums[k] /= static_cast<T>(std::max<int64_t>(forest_.trees(), 1));
      if (!base_.empty()) sums[k] += base_[k];
    }
    post_transform(transform_, sums, targets_);
    for (int64_t k = 0; k < targets_; ++k) {
      if (out.type == DataType::float64)
        out.as<double>()[offset + k] = static_cast<double>(sums[k]);
      else if (out.type == DataType::float16)
        out.as<Float16>()[offset + k] = Float16(static_cast<float>(sums[k]));
      else
        out.as<float>()[offset + k] = static_cast<float>(sums[k]);
    }
  }

  int64_t targets_;
  Forest<T> forest_;
  Aggregate aggregate_;
  PostTransform transform_;
  std::vector<T> base_;
};

template <bool ByIndex>
KernelPtr make(const NodeInfo& info) {
  const DataType type = info.in_type(0);
  if (type == DataType::float64) return std::make_unique<TreeEnsembleRegressor<double>>(info, ByIndex);
  if (!is_ml_number(type) && type != DataType::float16) info.refuse(Code::not_implemented, "type ", type);
  return std::make_unique<TreeEnsembleRegressor<float>>(info, ByIndex);
}

}  // namespace
}  // namespace epona

EPONA_OPS(tree_ensemble_regressor) {
  r.add({.name = "TreeEnsembleRegressor", .domain = "ai.onnx.ml", .make = make<false>});
  r.add({.name = "TreeEnsemble", .domain = "ai.onnx.ml", .since = 5, .make = make<true>});
}
