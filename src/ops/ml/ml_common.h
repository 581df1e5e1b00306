#pragma once
#include <span>
#include <string>
#include <vector>

#include "ops/kernel.h"

namespace epona {

enum class PostTransform : uint8_t { none, softmax, logistic, softmax_zero, probit };

PostTransform post_transform_of(const NodeInfo& info);
/// Transforms one row of scores (float or double) in place.
template <class T>
void post_transform(PostTransform kind, T* scores, int64_t n);

/// The class labels of a classifier: integers or strings.
struct ClassLabels {
  std::vector<int64_t> ints;
  std::vector<std::string> strings;

  /// `ints_key` is classlabels_ints or classlabels_int64s.
  ClassLabels(const NodeInfo& info, const char* ints_key);
  int64_t size() const { return static_cast<int64_t>(strings.empty() ? ints.size() : strings.size()); }
  /// Writes label `index` as element i of the output; -1 writes 0 or "".
  void write(Tensor& out, int64_t i, int64_t index) const;
};

/// Attribute `key` (floats) or `key`_as_tensor (double), whichever is there.
std::vector<double> doubles_of(const NodeInfo& info, const std::string& key);

/// Rows and columns of an input {N, F} or {F}; other ranks are refused.
struct RowsOf {
  int64_t rows, columns;
  template <class Context>
  RowsOf(const Context& c, const Shape& x) {
    if (x.rank() != 1 && x.rank() != 2) c.refuse("input has shape ", x, "; expected {N, F} or {F}");
    rows = x.rank() == 2 ? x[0] : 1;
    columns = x.back();
  }
};

/// The types that ai.onnx.ml operators take as numbers.
bool is_ml_number(DataType type);
/// Elements of a float, double, int32 or int64 tensor as float or double, converted into `scratch` when need be.
template <class T>
const T* numbers_of(const Tensor& x, T* scratch);
/// Scratch bytes that numbers_of<T> may need for an input of this type.
size_t numbers_bytes(DataType from, DataType to, int64_t n);

}  // namespace epona
