#pragma once
#include "graph/graph.h"
#include "model/tensor_proto.h"
#include "onnx/onnx_pb.h"

namespace epona {

/// Builds a Graph (and its subgraphs) from a GraphProto whose value_info carries the inferred types.
/// Throws on duplicate definitions, unknown names, cycles.
std::shared_ptr<Graph> graph_from_proto(const onnx::GraphProto& proto, const std::map<std::string, int>& opsets,
                                        WeightSource& source, std::vector<std::string>& warnings);

}  // namespace epona
