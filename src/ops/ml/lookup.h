#pragma once
#include <bit>
#include <string>
#include <unordered_map>

#include "ops/dispatch.h"
#include "ops/kernel.h"

namespace epona {

/// Finds keys (strings or numbers) in a list: key -> position. The first of equal keys counts; NaN equals NaN.
class Lookup {
 public:
  using Numbers = Types<float, double, int64_t, int32_t, int16_t>;

  void add(const std::string& key) { strings_.try_emplace(key, static_cast<int64_t>(strings_.size())); }
  template <class T>
  void add(T key, int64_t position) {
    numbers_.try_emplace(bits(key), position);
  }
  void add(const Tensor& keys) {
    if (keys.type == DataType::string)
      for (int64_t i = 0; i < keys.size(); ++i) strings_.try_emplace(keys.as<std::string>()[i], i);
    else
      dispatch(keys.type, Numbers{}, [&]<class T>() {
        for (int64_t i = 0; i < keys.size(); ++i) add(keys.as<T>()[i], i);
      });
  }
  void add(const std::vector<std::string>& keys) {
    for (size_t i = 0; i < keys.size(); ++i) strings_.try_emplace(keys[i], static_cast<int64_t>(i));
  }
  void add(const std::vector<int64_t>& keys) {
    for (size_t i = 0; i < keys.size(); ++i) add(keys[i], static_cast<int64_t>(i));
  }

  /// -1 when it is not there.
  int64_t find(const std::string& key) const {
    auto it = strings_.find(key);
    return it == strings_.end() ? -1 : it->second;
  }
  template <class T>
  int64_t find(T key) const {
    auto it = numbers_.find(bits(key));
    return it == numbers_.end() ? -1 : it->second;
  }

  /// fn(i, position) for every element of a tensor of strings or numbers; says whether the type is one of those.
  template <class Fn>
  bool each(const Tensor& x, Fn&& fn) const {
    const int64_t n = x.size();
    if (x.type == DataType::string) {
      for (int64_t i = 0; i < n; ++i) fn(i, find(x.as<std::string>()[i]));
      return true;
    }
    return dispatch(x.type, Numbers{}, [&]<class T>() {
      for (int64_t i = 0; i < n; ++i) fn(i, find(x.as<T>()[i]));
    });
  }

 private:
  template <class T>
  static int64_t bits(T key) {
    if constexpr (std::is_floating_point_v<T>) {
      if (key != key) return INT64_MIN;  // one NaN for all
      if (key == 0) return 0;            // and one zero
      return std::bit_cast<int64_t>(static_cast<double>(key));
    } else {
      return key;
    }
  }
  std::unordered_map<std::string, int64_t> strings_;
  std::unordered_map<int64_t, int64_t> numbers_;
};

}  // namespace epona
