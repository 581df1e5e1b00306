#pragma once
#include <array>
#include <functional>
#include <memory>

#include "graph/tensor.h"

namespace epona::cpu {

/// What `pack` makes of a constant, once for all nodes that pack it in the same way (models share the weights of a layer
/// between its repetitions): `how` names the way, with the sizes it depends on. Lives as long as somebody holds it.
std::shared_ptr<void> share_packed(const Tensor& constant, const std::array<int64_t, 3>& how,
                                   const std::function<std::shared_ptr<void>()>& pack);

}  // namespace epona::cpu
