#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/thread_pool.h"
#include "kernel_test_util.h"

namespace epona {

inline ThreadPool& test_pool(int threads = 2) {
  static ThreadPool one({.threads = 1}), two({.threads = 2});
  return threads == 1 ? one : two;
}

inline std::vector<float> random_floats(size_t n, float low, float high, uint32_t seed = 1) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> dist(low, high);
  std::vector<float> values(n);
  for (float& v : values) v = dist(rng);
  return values;
}

/// Zeros, ones, denormals, extremes, infinities and NaN.
inline std::vector<float> special_floats() {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.0f,        1.0f,  0.5f,   2.0f,          3.0f,       1.5f,        2.5f,
                               0.49999997f, 1e-3f, 1e-20f, 1e-40f,        1.4e-45f,   1e5f,        1e10f,
                               1e30f,       88.5f, 89.0f,  3.4028235e38f, 8388608.0f, 16777216.0f, inf};
  const size_t n = values.size();
  for (size_t i = 0; i < n; ++i) values.push_back(-values[i]);
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  return values;
}

/// Floats from the whole range, by their bits.
inline std::vector<float> floats_by_bits(uint32_t step) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (1ull << 32); bits += step) {
    const auto word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, 4);
    values.push_back(value);
  }
  return values;
}

/// Distance of `got` from the exact value, in units of the exact value's last place in float.
inline double ulp_error(double exact, float got) {
  const auto nearest = static_cast<float>(exact);
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got) ? 0 : 1e30;
  if (nearest == got) return 0;
  if (std::isinf(nearest) || std::isinf(got)) return 1e30;
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

}  // namespace epona
