#pragma once
#include "providers/provider.h"

namespace epona::openvino {

/// What OpenVINO's CPU device computes otherwise than ONNX says, found with ONNX's own cases and with our tests on
/// 2026.4.1. Reason::none when nothing is known against the node. `user_int` says of a value whether it is an integer that
/// comes from the model's inputs, and not from dims.
Refusal known_wrong(const Graph& graph, const Node& node, const std::vector<char>& user_int);

/// For every value: an integer that follows from the graph's inputs (dims, positions and constants are small).
std::vector<char> user_integers(const Graph& graph);

}  // namespace epona::openvino
