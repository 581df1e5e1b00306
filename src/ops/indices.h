#pragma once
#include <cstdint>

#include "graph/tensor.h"

namespace epona {

/// An axis as a number in [0, rank): negative ones count from the end. `c` is a ShapeContext, RunContext or
/// NodeInfo-like object whose refuse() names the node.
template <class Context>
int resolve_axis(const Context& c, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    c.refuse("axis ", axis, " is out of range [", -rank, ",", rank - 1, "] for a tensor of rank ", rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// Element i of a tensor of int32 or int64 (the types that ONNX allows for indices), without a copy of the tensor.
inline int64_t int_at(const Tensor& tensor, int64_t i) {
  return tensor.type == DataType::int32 ? tensor.as<int32_t>()[i] : tensor.as<int64_t>()[i];
}

/// Refuses an input that is not of int32 or int64.
template <class Context>
void check_index_type(const Context& c, const Tensor& tensor, const char* what) {
  if (tensor.type != DataType::int32 && tensor.type != DataType::int64)
    c.refuse(what, " must be int32 or int64, found ", tensor.type);
}

/// The only element of an int32/int64 tensor (a scalar, or any shape of one element).
template <class Context>
int64_t one_int(const Context& c, const Tensor& tensor, const char* what) {
  check_index_type(c, tensor, what);
  if (tensor.size() != 1) c.refuse(what, " must be one number, found shape ", tensor.shape);
  return int_at(tensor, 0);
}

}  // namespace epona
