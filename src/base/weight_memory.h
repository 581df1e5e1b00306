#pragma once
#include <cstddef>
#include <memory>

namespace epona {

/// 64-byte aligned memory for packed weights. Blocks asked for one after another lie one after another, as far as they
/// fit a chunk: kernels are built in the order in which they run, so a kernel that fetches ahead of itself fetches the
/// next one's weights. Large chunks ask for huge pages.
std::shared_ptr<void> allocate_weights(size_t bytes);

}  // namespace epona
