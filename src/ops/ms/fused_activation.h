#pragma once
#include "kernels/activation.h"
#include "ops/kernel.h"

namespace epona {

/// The activation that com.microsoft's fused operators name in their attribute `activation`; `parameters` are its alpha
/// and beta (Clip: low and high). No attribute: none.
Activation fused_activation(const NodeInfo& info, const std::vector<float>& parameters);

}  // namespace epona
