#pragma once
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

#include "kernels/isa.h"

namespace epona {

/// Memory aligned as the kernels' workspaces are.
template <class T>
class Aligned {
 public:
  explicit Aligned(size_t count)
      : data_(static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 127) / 64 * 64)), &std::free) {}
  T* data() { return data_.get(); }

 private:
  std::unique_ptr<T, decltype(&std::free)> data_;
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool flip() { return below(2) == 1; }
  int64_t pick(std::initializer_list<int64_t> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }
  /// In [-1, 1], in steps of 1/1000.
  float value() { return static_cast<float>(below(2001) - 1000) / 1000.0f; }
  std::vector<float> floats(int64_t n) {
    std::vector<float> v(static_cast<size_t>(n));
    for (float& x : v) x = value();
    return v;
  }
  std::vector<uint8_t> bytes(int64_t n) {
    std::vector<uint8_t> v(static_cast<size_t>(n));
    for (uint8_t& x : v) x = static_cast<uint8_t>(engine_());
    return v;
  }

 private:
  std::mt19937 engine_;
};

/// Runs fn once on every instruction-set tier of this CPU, then returns to the best one.
template <class F>
void for_each_isa(F&& fn) {
  const auto names = available_isas();
  for (const char* name : names) {
    set_isa(name);
    fn();
  }
  set_isa(names.back());
}

}  // namespace epona
