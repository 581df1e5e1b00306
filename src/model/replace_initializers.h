#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/tensor.h"
#include "onnx/onnx_pb.h"

namespace epona {

/// Puts tensors in the place of a graph's initialisers of the same names; type and dims must be the same. Large ones
/// become blobs. Returns an owner that keeps `owner` and the tensors alive.
std::shared_ptr<void> replace_initializers(onnx::GraphProto& graph, const std::map<std::string, Tensor>& values,
                                           std::vector<std::span<const std::byte>>& blobs, std::shared_ptr<void> owner,
                                           std::vector<std::string>& warnings);

}  // namespace epona
