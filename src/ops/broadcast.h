#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

#include "base/shape.h"
#include "ops/kernel.h"

namespace epona {

/// Grows `shape` to what it and `other` broadcast to in the manner of numpy. False when they do not broadcast.
bool broadcast_into(Shape& shape, const Shape& other);
/// The shape to which inputs [first, first + count) broadcast; throws naming the input that does not fit.
Shape broadcast_inputs(const ShapeContext& c, int first, int count);
/// Whether `shape` broadcasts to `target` without changing it.
bool broadcasts_to(const Shape& shape, const Shape& target);

/// How operators before opset 7 broadcast: with the attribute broadcast = 1 the second operand's dims are those of the
/// first from the attribute `axis` on (by default the last ones); PRelu's slopes lie along dim 1. From opset 7 on it does
/// nothing.
class LegacyBroadcast {
 public:
  explicit LegacyBroadcast(const NodeInfo& info);
  /// The second operand's shape with ones appended, so that it broadcasts as numpy does.
  Shape second(const Shape& first, const Shape& second) const;

 private:
  bool active_ = false;
  int64_t axis_ = -1;
};

/// Dims and element strides of `count` operands broadcast to `out`, with neighbouring dims merged where every operand
/// allows it and dims of size one dropped: strides are 0 for a repeated dim. dims gets at least one dim.
void collapse_broadcast(const Shape& out, const Shape* const* in, int count, Shape& dims, Shape* strides);

/// N operands broadcast to one shape, walked as runs in which each operand either advances by one element or stays.
template <int N>
class Broadcast {
 public:
  Broadcast(const Shape& out, const std::array<const Shape*, N>& in) : size_(out.size()) {
    collapse_broadcast(out, in.data(), N, dims_, strides_);
  }

  int64_t size() const { return size_; }
  /// How far operand i moves from one element of a run to the next: 0 or 1.
  int step(int i) const { return static_cast<int>(strides_[i].back()); }
  /// The longest run that the walk hands out.
  int64_t run_length() const { return dims_.back(); }

  /// Calls fn(at, offsets, count) for the runs that make up elements [begin, end) of the output: `at` is the output's
  /// element, offsets[i] operand i's.
  template <class Fn>
  void walk(int64_t begin, int64_t end, Fn&& fn) const {
    if (begin >= end) return;
    const int last = dims_.rank() - 1;
    const int64_t* dims = dims_.data();
    const int64_t* strides[N];
    int64_t offsets[N] = {};
    for (int i = 0; i < N; ++i) strides[i] = strides_[i].data();
    Shape index(last + 1, 0);
    int64_t rest = begin;
    for (int d = last; d >= 0 && rest > 0; --d) {
      index[d] = rest % dims[d];
      rest /= dims[d];
      for (int i = 0; i < N; ++i) offsets[i] += index[d] * strides[i][d];
    }
    int64_t* at = index.data();
    while (true) {
      int64_t count = std::min(dims[last] - at[last], end - begin);
      fn(begin, static_cast<const int64_t*>(offsets), count);
      begin += count;
      if (begin >= end) return;
      at[last] += count;
      for (int i = 0; i < N; ++i) offsets[i] += count * strides[i][last];
      for (int d = last; d > 0 && at[d] == dims[d]; --d) {
        at[d] = 0;
        ++at[d - 1];
        for (int i = 0; i < N; ++i) offsets[i] += strides[i][d - 1] - dims[d] * strides[i][d];
      }
    }
  }

 private:
  int64_t size_;
  Shape dims_;
  Shape strides_[N];
};

}  // namespace epona
