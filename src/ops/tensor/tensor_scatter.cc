#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// TensorScatter: a cache with rows of `update` written from write_indices[batch] on along the sequence axis.
class TensorScatter final : public Kernel {
 public:
  explicit TensorScatter(const NodeInfo& info) : axis_(info.attr("axis", -2)), circular_(false) {
    std::string mode = info.attr("mode", "linear");
    if (mode != "linear" && mode != "circular") info.refuse(Code::invalid_graph, "unknown mode '", mode, "'");
    circular_ = mode == "circular";
  }
  void shapes(ShapeContext& c) const override {
    const Shape &cache = c.in(0), &update = c.in(1);
    int axis = resolve_axis(c, axis_, cache.rank());
    if (axis == 0) c.refuse("axis must not be the batch dim 0");
    bool fits = update.rank() == cache.rank();
    for (int i = 0; fits && i < cache.rank(); ++i) fits = i == axis ? update[i] <= cache[i] : update[i] == cache[i];
    if (!fits) c.refuse("update of shape ", update, " does not fit a cache of shape ", cache, " along axis ", axis);
    if (c.has(2) && (c.in(2).rank() != 1 || c.in(2)[0] != cache[0]))
      c.refuse("write_indices of shape ", c.in(2), " must have one number a batch of ", cache[0]);
    c.out(0, cache);
  }
  void run(const RunContext& c) const override {
    const Tensor &cache = c.in(0), &update = c.in(1);
    Tensor& out = c.out(0);
    copy_elements(cache.type, cache.size(), cache.data, 0, out.data, 0);
    int rank = cache.shape.rank(), axis = resolve_axis(c, axis_, rank);
    int64_t batch = cache.shape[0], middle = cache.shape.size(1, axis), inner = cache.shape.size(axis + 1, rank);
    int64_t room = cache.shape[axis], length = update.shape[axis];
    if (update.size() == 0) return;
    for (int64_t b = 0; b < batch; ++b) {
      int64_t start = c.has(2) ? c.data<int64_t>(2)[b] : 0;
      if (circular_) start = (start % room + room) % room;
      if (start < 0 || (!circular_ && start > room - length))
        c.refuse("write index ", start, " of batch ", b, " leaves no room for ", length, " rows in a cache of ", room);
      int64_t first = std::min(length, room - start);
      for (int64_t m = b * middle; m < (b + 1) * middle; ++m) {
        copy_elements(cache.type, first * inner, update.data, m * length * inner, out.data, (m * room + start) * inner);
        copy_elements(cache.type, (length - first) * inner, update.data, (m * length + first) * inner, out.data,
                      m * room * inner);
      }
    }
  }

 private:
  int64_t axis_;
  bool circular_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(tensor_scatter) { r.add({.name = "TensorScatter", .since = 24, .make = make_kernel<TensorScatter>}); }
