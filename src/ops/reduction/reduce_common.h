#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/half_block.h"
#include "base/shape.h"
#include "ops/dispatch.h"
#include "ops/integer_math.h"
#include "ops/registry.h"

namespace epona {

/// A reduction as nested loops: the tensor's dims, split into those that are kept and those that are reduced, with their
/// element strides, neighbours merged. The innermost group is apart: `inner` contiguous elements, kept or reduced.
struct ReducePlan {
  Shape kept, kept_strides, reduced, reduced_strides;
  bool inner_kept = false;
  int64_t inner = 1;
  int64_t outputs = 1;  ///< number of results
  int64_t count = 1;    ///< number of elements that make up a result

  /// Calls fn(offset) for every position of the reduced dims but the inner one, from a result's first element on.
  template <class Fn>
  void each_reduced(int64_t start, Fn&& fn) const {
    if (count == 0) return;
    Shape index(reduced.rank(), 0);
    while (true) {
      fn(start);
      int d = reduced.rank() - 1;
      for (; d >= 0; --d) {
        start += reduced_strides[d];
        if (++index[d] < reduced[d]) break;
        start -= reduced[d] * reduced_strides[d];
        index[d] = 0;
      }
      if (d < 0) return;
    }
  }
  /// Offset of the first element of result `output` (in units of whole inner groups when those are kept).
  int64_t start_of(int64_t output) const {
    int64_t offset = 0;
    for (int d = kept.rank() - 1; d >= 0; --d) {
      offset += output % kept[d] * kept_strides[d];
      output /= kept[d];
    }
    return offset;
  }
};

/// Attributes and shapes that all reductions share. Axes are an attribute or, in later versions, input 1.
class ReduceKernel : public Kernel {
 public:
  void shapes(ShapeContext& c) const override;

 protected:
  explicit ReduceKernel(const NodeInfo& info);
  ReducePlan plan(const RunContext& c) const;
  /// Calls fn(plan, first, count, start) for tiles of at most kTile results that can be computed together: `start` is the
  /// offset of the first one's first element; results of a tile lie side by side.
  static constexpr int64_t kTile = 128;
  template <class Fn>
  void tiles(const RunContext& c, double ns_per_element, Fn&& fn) const {
    const ReducePlan p = plan(c);
    const int64_t width = p.inner_kept ? p.inner : 1;
    const int64_t per_group = (width + kTile - 1) / kTile;
    if (p.outputs == 0) return;
    const double cost = ns_per_element * static_cast<double>(p.count * std::min(width, kTile)) + 20;
    c.pool().parallel_for(p.outputs / width * per_group, cost, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t group = task / per_group, first = task % per_group * kTile;
        fn(p, group * width + first, std::min(kTile, width - first), p.start_of(group) + first);
      }
    });
  }

 private:
  /// Whether each dim is reduced.
  void mark(int rank, const Tensor* axes, const Node& node, bool* reduced) const;

  std::vector<int64_t> axes_;
  bool keep_dims_ = true, noop_ = false;
};

/// Types in which sums and products of T accumulate: wide, so that neither rounding nor order shows.
template <class T>
using WideSum =
    std::conditional_t<std::is_floating_point_v<T>, double, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

/// Rule has: Acc<T>; start<A>(), map<A>(x), join(a, b) and finish(a, count). Lanes keep the loop free of dependencies.
template <class Rule, class List>
class Reduce final : public ReduceKernel {
 public:
  explicit Reduce(const NodeInfo& info) : ReduceKernel(info) {
    DataType type = info.in_type(0);
    if (!contains(List{}, type) && !is_half(type)) info.refuse(Code::not_implemented, "element type ", type);
  }
  void run(const RunContext& c) const override {
    if (is_half(c.in(0).type)) return go<float, true>(c);
    dispatch(c.in(0).type, List{}, [&]<class T>() { go<T, false>(c); });
  }

 private:
  template <class T, bool kHalf>
  void go(const RunContext& c) const {
    using A = typename Rule::template Acc<T>;
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    tiles(c, 0.5, [&](const ReducePlan& p, int64_t first, int64_t count, int64_t start) {
      A sums[kTile];
      std::fill_n(sums, count, Rule::template start<A>());
      p.each_reduced(start, [&](int64_t at) {
        if constexpr (kHalf) {
          float block[kHalfBlock];
          const uint16_t* from = x.as<uint16_t>() + at;
          for (int64_t done = 0, n, all = p.inner_kept ? count : p.inner; done < all; done += n) {
            n = std::min(kHalfBlock, all - done);
            widen_half(x.type, from + done, block, n);
            add(block, p.inner_kept, n, sums);
          }
        } else {
          add(x.as<T>() + at, p.inner_kept, p.inner_kept ? count : p.inner, sums);
        }
      });
      for (int64_t i = 0; i < count; ++i) {
        auto result = Rule::finish(sums[i], p.count);
        if constexpr (kHalf) {
          float value = static_cast<float>(result);
          narrow_half(y.type, &value, y.as<uint16_t>() + first + i, 1);
        } else {
          y.as<T>()[first + i] = static_cast<T>(result);
        }
      }
    });
  }

  template <class T, class A>
  static void add(const T* x, bool kept, int64_t n, A* sums) {
    if (kept) {
      for (int64_t i = 0; i < n; ++i) sums[i] = Rule::join(sums[i], Rule::template map<A>(x[i]));
      return;
    }
    constexpr int kLanes = 8;
    int64_t i = 0;
    if (n >= kLanes) {
      A lanes[kLanes];
      for (int k = 0; k < kLanes; ++k) lanes[k] = Rule::template map<A>(x[k]);
      for (i = kLanes; i + kLanes <= n; i += kLanes)
        for (int k = 0; k < kLanes; ++k) lanes[k] = Rule::join(lanes[k], Rule::template map<A>(x[i + k]));
      for (int k = 0; k < kLanes; ++k) *sums = Rule::join(*sums, lanes[k]);
    }
    for (; i < n; ++i) *sums = Rule::join(*sums, Rule::template map<A>(x[i]));
  }
};

/// The record of a reduction: input 1, the axes, decides the output's shape.
template <class K>
OpDef reduction(const char* name) {
  return {.name = name, .make = make_kernel<K>, .shape_inputs = 2};
}

}  // namespace epona
