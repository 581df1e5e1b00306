#pragma once
#include <map>
#include <string>
#include <vector>

#include "providers/openvino/core.h"
#include "providers/provider.h"

namespace epona::openvino {

/// Nodes that OpenVINO's message blames for a failed conversion, among `nodes` of a graph (prepared, so that a node is
/// named after its first output). Empty when the message names none of them. Failures that only follow from another
/// node's failure are left out.
std::map<NodeId, Refusal> blamed_nodes(const Graph& graph, const std::vector<NodeId>& nodes,
                                       const std::string& message);

/// Nodes whose operation the device does not support, as it says itself. Empty when it cannot be asked.
std::map<NodeId, Refusal> unsupported_nodes(const Core& core, const ov_model& model, const Graph& graph,
                                            const std::vector<NodeId>& nodes);

}  // namespace epona::openvino
