#pragma once
#include <span>
#include <string>

#include "base/error.h"
#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"

namespace epona::test {

/// A serialised model from ONNX's text syntax.
inline std::string model_bytes(const std::string& text) {
  onnx::ModelProto proto;
  onnx::OnnxParser parser(text.c_str());
  auto status = parser.Parse(proto);
  if (!status.IsOK()) fail(Code::invalid_argument, "bad model text: ", status.ErrorMessage());
  return proto.SerializeAsString();
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace epona::test
