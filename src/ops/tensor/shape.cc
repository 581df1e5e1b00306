#include <algorithm>

#include "ops/registry.h"

namespace epona {
namespace {

/// Shape: the dims [start, end) of the input, both clamped to the rank (opset 15).
class ShapeOp final : public Kernel {
 public:
  explicit ShapeOp(const NodeInfo& info)
      : start_(info.attr("start", 0)), end_(info.attr("end", std::numeric_limits<int64_t>::max())) {}
  void shapes(ShapeContext& c) const override {
    auto [start, end] = range(c.in(0).rank());
    c.out(0, {end - start});
  }
  void run(const RunContext& c) const override {
    const Shape& in = c.in(0).shape;
    auto [start, end] = range(in.rank());
    std::copy(in.begin() + start, in.begin() + end, c.out_data<int64_t>(0));
  }

 private:
  std::pair<int64_t, int64_t> range(int64_t rank) const {
    int64_t start = std::clamp<int64_t>(start_ < 0 ? start_ + rank : start_, 0, rank);
    int64_t end = std::clamp<int64_t>(end_ < 0 ? end_ + rank : end_, 0, rank);
    return {start, std::max(start, end)};
  }
  int64_t start_, end_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(shape) { r.add({.name = "Shape", .since = 1, .make = make_kernel<ShapeOp>, .shape_only = true}); }
