#pragma once
#include <string_view>
#include <vector>

namespace epona {

/// Instruction-set tiers the SIMD kernels are compiled for, in rising order.
enum class Isa { sse2, avx2, avx512, avx512_vnni };

/// Applies the tier named by the environment variable EPONA_ISA, once per process; without it the best tier of this CPU
/// is used. Call it before the first kernel runs. Throws Error when the name is unknown or the CPU lacks the tier.
void init_isa();

/// Switches to a tier by name, for tests. Weights packed under another tier must be packed again, and no kernel may be
/// running.
void set_isa(std::string_view name);

Isa isa();
const char* isa_name();  ///< "sse2", "avx2", "avx512" or "avx512_vnni"

/// Names of the tiers this CPU has, in rising order.
std::vector<const char*> available_isas();

}  // namespace epona
