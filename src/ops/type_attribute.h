#pragma once
#include "ops/kernel.h"

namespace epona {

/// The element type that an integer attribute names (ONNX's TensorProto.DataType); refuses the node for a number that
/// names none. 0, "undefined", counts as absent.
inline DataType type_attribute(const NodeInfo& info, const char* key, DataType otherwise) {
  const int64_t number = info.attr(key, int64_t{0});
  if (number == 0) return otherwise;
  if (number < 0 || number > static_cast<int64_t>(DataType::int2))
    info.refuse(Code::invalid_graph, "attribute ", key, ": ", number, " is not an element type of ONNX");
  return static_cast<DataType>(number);
}

}  // namespace epona
