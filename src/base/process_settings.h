#pragma once
#include <cstdint>
#include <optional>

namespace epona {

/// Seed of random operators whose node has none; not set: a new one in every process.
void set_process_seed(int64_t seed);
std::optional<int64_t> process_seed();

/// Threads of sessions that do not say how many; 0: as many as the machine allows.
void set_default_threads(int threads);

}  // namespace epona
