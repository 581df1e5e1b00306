#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/cancel.h"
#include "graph/graph.h"
#include "model/mapping.h"
#include "onnx/onnx_pb.h"

namespace epona {

/// Where the elements of a model's tensors lie: cut-out blobs, external files.
struct WeightSource {
  std::vector<std::span<const std::byte>> blobs;  ///< of the skeleton
  std::shared_ptr<void> blob_owner;               ///< keeps the blobs' memory alive
  std::filesystem::path folder;                   ///< of the model file; empty when the model came from memory
  std::map<std::string, std::shared_ptr<FileMapping>> files;  ///< external data, opened once each
  /// The same by the location that the model names: those found here were checked when the model was read before.
  std::map<std::string, std::shared_ptr<FileMapping>> locations;
  const std::map<std::string, Tensor>* memory_files = nullptr;  ///< bytes that stand for such files, by location
  CancelFlag cancel = nullptr;

  /// The bytes that a tensor's external_data entries name. Refuses absolute paths, paths that leave the folder (also
  /// through symbolic links), missing files, and ranges outside the file.
  std::span<const std::byte> external(const onnx::TensorProto& proto, size_t expected, std::shared_ptr<void>& owner);
};

/// The tensor of a TensorProto; large elements stay where they are (`owner` keeps the mapping alive; such views may be
/// unaligned). Throws Error naming the tensor when type, dims and data do not fit together.
Tensor tensor_from_proto(const onnx::TensorProto& proto, WeightSource& source);
/// A sparse tensor made dense.
Tensor tensor_from_proto(const onnx::SparseTensorProto& proto, WeightSource& source);

onnx::TensorProto tensor_to_proto(const Tensor& tensor, const std::string& name);

Type type_from_proto(const onnx::TypeProto& proto);
onnx::TypeProto type_to_proto(const Type& type);

}  // namespace epona
