#pragma once
#include <optional>

#include "kernels/elementwise.h"
#include "ops/kernel.h"

namespace epona::cpu {

/// The Activation that a node of one input applies, when it is one: Relu, Clip with constant bounds, Gelu, ...
std::optional<Activation> activation_of(const Graph& graph, const Node& node);

/// One element-wise node as instructions of an EwProgram.
struct ElementSteps {
  /// Steps whose sources 0, 1, ... are the node's inputs listed in `inputs`, the results of earlier steps after them.
  std::vector<EwStep> steps;
  std::vector<int> inputs;  ///< the node's inputs that the steps read (a constant exponent is part of the steps)
};

/// The steps for a node, when it is an element-wise operator that has them; types are not looked at.
std::optional<ElementSteps> element_steps(const Graph& graph, const Node& node);

}  // namespace epona::cpu
