#include "ops/reduction/reduce_common.h"

namespace epona {

ReduceKernel::ReduceKernel(const NodeInfo& info)
    : axes_(info.ints("axes")),
      keep_dims_(info.attr("keepdims", 1) != 0),
      noop_(info.attr("noop_with_empty_axes", 0) != 0) {}

void ReduceKernel::mark(int rank, const Tensor* axes, const Node& node, bool* reduced) const {
  int64_t count = axes ? axes->size() : static_cast<int64_t>(axes_.size());
  std::fill_n(reduced, rank, count == 0 && !noop_);
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = !axes                           ? axes_[static_cast<size_t>(i)]
                   : axes->type == DataType::int32 ? axes->as<int32_t>()[i]
                                                   : axes->as<int64_t>()[i];
    if (axis < -rank || axis >= rank)
      fail(Code::invalid_argument, describe(node), ": axis ", axis, " is out of range for an input of rank ", rank);
    reduced[axis < 0 ? axis + rank : axis] = true;
  }
}

namespace {

/// Flags of up to 64 dims without an allocation.
struct Flags {
  bool flag[64];
};

int checked_rank(const Shape& shape, const Node& node) {
  if (shape.rank() > 64) fail(Code::not_implemented, describe(node), ": rank ", shape.rank(), " is above 64");
  return shape.rank();
}

}  // namespace

void ReduceKernel::shapes(ShapeContext& c) const {
  const Shape& in = c.in(0);
  Flags reduced;
  int rank = checked_rank(in, c.node());
  mark(rank, c.value(1), c.node(), reduced.flag);
  Shape out;
  for (int d = 0; d < rank; ++d) {
    if (!reduced.flag[d])
      out.push_back(in[d]);
    else if (keep_dims_)
      out.push_back(1);
  }
  c.out(0, std::move(out));
}

ReducePlan ReduceKernel::plan(const RunContext& c) const {
  const Shape& in = c.in(0).shape;
  Flags reduced;
  int rank = checked_rank(in, c.node());
  mark(rank, c.has(1) ? &c.in(1) : nullptr, c.node(), reduced.flag);
  ReducePlan p;
  // Innermost first; the first group of dims is the inner one, later ones are gathered outermost first.
  int64_t stride = 1;
  int last = 0;  // 0: none yet, 1: kept, 2: reduced
  bool inner_done = false;
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t dim = in[d];
    const int kind = reduced.flag[d] ? 2 : 1;
    (reduced.flag[d] ? p.count : p.outputs) *= dim;
    if (dim == 1) continue;
    if (kind != last) {
      if (last == 0) {
        p.inner_kept = kind == 1;
        p.inner = 1;
      } else {
        inner_done = true;
        Shape& dims = kind == 1 ? p.kept : p.reduced;
        Shape& strides = kind == 1 ? p.kept_strides : p.reduced_strides;
        dims.insert(0, 1);
        strides.insert(0, stride);
      }
      last = kind;
    }
    if (!inner_done)
      p.inner *= dim;
    else
      (kind == 1 ? p.kept : p.reduced)[0] *= dim;
    stride *= dim;
  }
  return p;
}

}  // namespace epona
