#pragma once
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "base/process_settings.h"
#include "ops/kernel.h"

namespace epona {

/// A stream of random numbers addressed by position (splitmix64 of a counter): threads draw from it without a lock and
/// the result does not depend on how the work is split.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key) : key_(mix(key)) {}
  uint64_t bits(int64_t at) const { return mix(key_ + static_cast<uint64_t>(at) * 0x9e3779b97f4a7c15u); }
  /// In [0, 1), with 53 bits.
  double uniform(int64_t at) const { return static_cast<double>(bits(at) >> 11) * 0x1p-53; }
  /// Standard normal, by Box and Muller's transform of the numbers at 2*at and 2*at+1.
  double normal(int64_t at) const {
    double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(2 * at)));
    return radius * std::cos(6.283185307179586 * uniform(2 * at + 1));
  }

 private:
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t key_;
};

/// Gives each run of a kernel a stream of its own. With a seed attribute the n-th run of every session draws the same
/// numbers; without, no two do unless the process has a seed.
class RandomSource {
 public:
  explicit RandomSource(const NodeInfo& info) {
    static std::atomic<uint64_t> kernels{0};
    if (info.has_attr("seed"))
      key_ = std::bit_cast<uint32_t>(info.attr("seed", 0.0f));
    else if (auto seed = process_seed())
      key_ = static_cast<uint64_t>(*seed) * 0xd1b54a32d192ed03u + std::hash<std::string>()(info.node().name);
    else
      key_ = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) * 31 +
             kernels.fetch_add(1) * 0x9e3779b97f4a7c15u;
  }
  RandomStream next() const { return RandomStream(key_ + runs_.fetch_add(1) * 0xd1342543de82ef95u); }

 private:
  uint64_t key_;
  mutable std::atomic<uint64_t> runs_{0};
};

}  // namespace epona
