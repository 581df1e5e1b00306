#include "kernels/reduce.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// The reductions on float32. Axes are an attribute or, in later versions, input 1.
class FastReduce final : public Kernel {
 public:
  FastReduce(const NodeInfo& info, ReduceOp op, KernelPtr portable)
      : portable_(std::move(portable)),
        op_(op),
        axes_(info.ints("axes")),
        noop_(info.attr("noop_with_empty_axes", 0)) {}
  void shapes(ShapeContext& c) const override { portable_->shapes(c); }
  void run(const RunContext& c) const override {
    const Shape& x = c.in(0).shape;
    bool reduced[kMaxRank] = {};
    ReduceDims dims;
    if (x.rank() > kMaxRank || !mark(c, x.rank(), reduced) ||
        !plan_reduce(x.dims(), {reduced, static_cast<size_t>(x.rank())}, dims) || dims.count == 0)
      return portable_->run(c);
    reduce(op_, dims, c.data<float>(0), c.out_data<float>(0), c.pool());
  }

 private:
  static constexpr int kMaxRank = 16;

  bool mark(const RunContext& c, int rank, bool* reduced) const {
    const bool input = c.has(1);
    const int64_t count = input ? c.in(1).size() : static_cast<int64_t>(axes_.size());
    if (input && c.in(1).type != DataType::int64) return false;
    const int64_t* axes = input ? c.data<int64_t>(1) : axes_.data();
    std::fill_n(reduced, rank, count == 0 && !noop_);
    for (int64_t i = 0; i < count; ++i) reduced[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
    return true;
  }

  KernelPtr portable_;
  ReduceOp op_;
  std::vector<int64_t> axes_;
  bool noop_;
};

const std::map<std::string_view, ReduceOp>& names() {
  static const std::map<std::string_view, ReduceOp> map = {
      {"ReduceSum", ReduceOp::sum},        {"ReduceMean", ReduceOp::mean},
      {"ReduceMax", ReduceOp::max},        {"ReduceMin", ReduceOp::min},
      {"ReduceProd", ReduceOp::prod},      {"ReduceSumSquare", ReduceOp::sum_square},
      {"ReduceL1", ReduceOp::l1},          {"ReduceL2", ReduceOp::l2},
      {"ReduceLogSum", ReduceOp::log_sum}, {"ReduceLogSumExp", ReduceOp::log_sum_exp}};
  return map;
}

KernelPtr make(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  if (portable && info.in_type(0) == DataType::float32)
    return std::make_unique<FastReduce>(info, names().at(info.node().op), std::move(portable));
  reason = cat("type ", info.in_type(0));
  return nullptr;
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(reduce) {
  for (const auto& [name, op] : names()) r.add({.name = name.data(), .make = make});
}
