#pragma once
#include <optional>

#include "graph/graph.h"
#include "kernels/activation.h"
#include "ops/kernel.h"

namespace epona {

/// The function that a one-input element-wise float node computes, if it is one that kernels can apply to what they are
/// about to store: Relu, Clip with constant bounds, Sigmoid, ... and epona's own Activation.
std::optional<Activation> activation_of(const Graph& graph, const Node& node);

/// Writes an activation into the attributes `activation`, `activation_a`, `activation_b` of a node of domain "epona",
/// and reads it back; without them: none.
void set_activation(Node& node, const Activation& activation);
Activation read_activation(const NodeInfo& info);

}  // namespace epona
