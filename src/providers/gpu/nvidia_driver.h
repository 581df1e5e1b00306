#pragma once
#include <vector>

#include "providers/registry.h"

namespace epona {

/// The NVIDIA driver's library, its version and the GPU numbered `device`.
std::vector<Finding> nvidia_driver_findings(int64_t device);

/// A pip package of CUDA libraries for the major version that the driver or an installed package suggests (13 by default).
std::vector<Finding> cuda_library_findings();

}  // namespace epona
