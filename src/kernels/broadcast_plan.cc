#include "kernels/broadcast_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace epona {

bool BroadcastPlan::dense(int i) const {
  int64_t expected = 1;
  for (int d = rank - 1; d >= 0; --d) {
    if (strides[i][d] != expected) return false;
    expected *= dims[d];
  }
  return true;
}

bool BroadcastPlan::scalar(int i) const {
  for (int d = 0; d < rank; ++d)
    if (strides[i][d] != 0) return false;
  return true;
}

int64_t BroadcastPlan::offset(int i, int64_t at) const {
  int64_t offset = 0;
  for (int d = rank - 1; d > 0; --d) {
    offset += at % dims[d] * strides[i][d];
    at /= dims[d];
  }
  return offset + at * strides[i][0];
}

bool plan_broadcast(Dims out, std::span<const Dims> operands, BroadcastPlan& plan) {
  const int count = static_cast<int>(operands.size());
  if (count > BroadcastPlan::kMaxOperands) return false;
  plan.operands = count;
  plan.size = 1;
  for (int64_t dim : out) plan.size *= dim;

  // Built innermost first, then reversed.
  int rank = 0;
  int64_t step[BroadcastPlan::kMaxOperands];  // stride that operand i would have for the next dim, were it not repeated
  std::fill_n(step, count, 1);
  for (int d = static_cast<int>(out.size()) - 1; d >= 0; --d) {
    if (out[d] == 1) continue;
    int64_t stride[BroadcastPlan::kMaxOperands];
    bool merge = rank > 0;
    for (int i = 0; i < count; ++i) {
      const int own = d - static_cast<int>(out.size() - operands[i].size());
      const bool moves = own >= 0 && operands[i][own] != 1;
      stride[i] = moves ? step[i] : 0;
      if (moves) step[i] *= out[d];
      merge = merge && stride[i] == plan.strides[i][rank - 1] * plan.dims[rank - 1];
    }
    if (merge) {
      plan.dims[rank - 1] *= out[d];
      continue;
    }
    if (rank == BroadcastPlan::kMaxDims) return false;
    plan.dims[rank] = out[d];
    for (int i = 0; i < count; ++i) plan.strides[i][rank] = stride[i];
    ++rank;
  }
  if (rank == 0) {
    plan.dims[0] = 1;
    for (int i = 0; i < count; ++i) plan.strides[i][0] = 1;  // one element: dense and scalar alike
    rank = 1;
  }
  std::reverse(plan.dims, plan.dims + rank);
  for (int i = 0; i < count; ++i) std::reverse(plan.strides[i], plan.strides[i] + rank);
  plan.rank = rank;
  return true;
}

namespace {

template <class T>
void gather(const BroadcastPlan& plan, int operand, const T* data, int64_t begin, int64_t n, T* to) {
  const int last = plan.rank - 1;
  const int64_t* strides = plan.strides[operand];
  int64_t index[BroadcastPlan::kMaxDims], offset = 0, rest = begin;
  for (int d = last; d > 0; --d) {
    index[d] = rest % plan.dims[d];
    rest /= plan.dims[d];
    offset += index[d] * strides[d];
  }
  index[0] = rest;
  offset += rest * strides[0];
  while (n > 0) {
    const int64_t run = std::min(n, plan.dims[last] - index[last]);
    if (strides[last] == 0)
      std::fill_n(to, run, data[offset]);
    else
      std::memcpy(to, data + offset, static_cast<size_t>(run) * sizeof(T));
    to += run;
    n -= run;
    index[last] += run;
    offset += run * strides[last];
    for (int d = last; d > 0 && index[d] == plan.dims[d]; --d) {
      index[d] = 0;
      ++index[d - 1];
      offset += strides[d - 1] - plan.dims[d] * strides[d];
    }
  }
}

}  // namespace

void gather_broadcast(const BroadcastPlan& plan, int i, const void* data, int elem_bytes, int64_t begin, int64_t n,
                      void* to) {
  const auto dispatch = [&]<class T>(T) {
    gather(plan, i, static_cast<const T*>(data), begin, n, static_cast<T*>(to));
  };
  switch (elem_bytes) {
    case 1:
      return dispatch(uint8_t());
    case 2:
      return dispatch(uint16_t());
    case 4:
      return dispatch(uint32_t());
    default:
      return dispatch(uint64_t());
  }
}

}  // namespace epona
