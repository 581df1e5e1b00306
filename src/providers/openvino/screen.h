#pragma once
#include "providers/openvino/core.h"
#include "providers/provider.h"

namespace epona::openvino {

/// What is known against a node before OpenVINO is asked: types it does not have or computes in another, operators that
/// it gets wrong. Reason::none when there is nothing.
Refusal screen(const Graph& graph, const Node& node, const Core& core, const std::vector<char>& user_int);

/// Why a whole graph is left to the CPU's own kernels; Reason::none when it is not.
Refusal screen_graph(const Graph& graph, const Core& core);

/// Whether an operator is worth leaving Epona's own kernels for.
bool is_heavy(const Node& node);

}  // namespace epona::openvino
