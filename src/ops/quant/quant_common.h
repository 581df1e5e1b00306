#pragma once
#include <algorithm>
#include <cstdint>

#include "ops/convert.h"
#include "ops/kernel.h"

namespace epona {

/// How scales (and zero points) lie over a tensor: one for all, one for each index of an axis, or one for each block of
/// an axis. Walked as runs of elements in which the scale's index advances by 0 or 1.
class ScaleMap {
 public:
  /// `block` is 0 for per-tensor and per-axis scales. Throws through `node` when the shapes do not fit.
  ScaleMap(const Node& node, const Shape& shape, const Shape& scale, int64_t axis, int64_t block);

  /// Calls fn(at, scale_at, step, count) for the runs that make up elements [begin, end).
  template <class Fn>
  void walk(int64_t begin, int64_t end, Fn&& fn) const {
    while (begin < end) {
      int64_t count, scale, step;
      find(begin, scale, step, count);
      count = std::min(count, end - begin);
      fn(begin, scale, step, count);
      begin += count;
    }
  }

 private:
  void find(int64_t at, int64_t& scale, int64_t& step, int64_t& count) const;

  enum class Kind { tensor, axis, block } kind_ = Kind::tensor;
  int64_t size_ = 0, length_ = 1, inner_ = 1, block_ = 1, blocks_ = 1;
};

/// Integer types that values are quantised to, with their ranges.
struct QuantRange {
  int32_t low = 0, high = 0;
};
/// False for the small float types; refuses nothing.
bool quant_range(DataType type, QuantRange& range);

/// Elements of a quantised integer type (int32 included) as int32, from `begin` on (a multiple of 4 for packed types).
void load_quantized(DataType type, const void* from, int64_t begin, int64_t count, int32_t* to);

/// clamp(round_half_even(value) + zero), without libm: `low` and `high` bound the result. NaN gives `zero`.
inline int32_t quantize_one(float value, int32_t zero, QuantRange range) {
  // Adding and taking away 1.5 * 2^23 rounds to nearest even when the number is small enough.
  constexpr float kMagic = 12582912.0f;
  const float low = static_cast<float>(range.low - zero), high = static_cast<float>(range.high - zero);
  value = value < low ? low : value > high ? high : value;
  value = value == value ? value : 0.0f;
  return static_cast<int32_t>((value + kMagic) - kMagic) + zero;
}

/// One scale or zero point of any type, for operators that take scalars.
float scalar_scale(const Tensor& tensor);
int32_t scalar_zero(const Tensor* tensor);

}  // namespace epona
