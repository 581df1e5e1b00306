#include <algorithm>

#include "kernels/view_copy.h"

namespace epona {
namespace {

constexpr int kMaxRank = 32;

/// Makes a short run that is contiguous on both sides one wider element.
void widen(ViewCopy& plan) {
  const int last = plan.rank - 1;
  if (plan.rank < 2 || plan.in_strides[last] != 1 || plan.out_strides[last] != 1) return;
  const int64_t run = plan.dims[last], bytes = run * plan.elem_bytes;
  if (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16) return;
  for (int d = 0; d < last; ++d)
    if (plan.in_strides[d] % run != 0 || plan.out_strides[d] % run != 0) return;
  for (int d = 0; d < last; ++d) {
    plan.in_strides[d] /= run;
    plan.out_strides[d] /= run;
  }
  plan.elem_bytes = static_cast<int>(bytes);
  plan.rank = last;
}

}  // namespace

bool plan_copy(int elem_bytes, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
               std::span<const int64_t> out_strides, ViewCopy& plan) {
  int order[kMaxRank], count = 0;
  if (dims.size() > kMaxRank) return false;
  bool empty = false;
  for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
    empty = empty || dims[d] == 0;
    if (dims[d] != 1) order[count++] = d;
  }
  std::stable_sort(order, order + count, [&](int a, int b) { return out_strides[a] > out_strides[b]; });
  plan.elem_bytes = elem_bytes;
  plan.rank = 0;
  if (empty) {
    plan.rank = 1;
    plan.dims[0] = 0;
    plan.in_strides[0] = plan.out_strides[0] = 1;
    return true;
  }
  for (int k = 0; k < count; ++k) {
    const int d = order[k];
    if (plan.rank > 0) {
      const int last = plan.rank - 1;
      if (plan.in_strides[last] == in_strides[d] * dims[d] && plan.out_strides[last] == out_strides[d] * dims[d]) {
        plan.dims[last] *= dims[d];
        plan.in_strides[last] = in_strides[d];
        plan.out_strides[last] = out_strides[d];
        continue;
      }
    }
    if (plan.rank == ViewCopy::kMaxDims) return false;
    plan.dims[plan.rank] = dims[d];
    plan.in_strides[plan.rank] = in_strides[d];
    plan.out_strides[plan.rank++] = out_strides[d];
  }
  if (plan.rank == 0) {
    plan.rank = 1;
    plan.dims[0] = plan.in_strides[0] = plan.out_strides[0] = 1;
  }
  widen(plan);
  return true;
}

bool plan_transpose(int elem_bytes, std::span<const int64_t> in_dims, std::span<const int64_t> perm,
                    ViewCopy& plan) {
  const int rank = static_cast<int>(in_dims.size());
  if (rank > kMaxRank) return false;
  int64_t strides[kMaxRank], dims[kMaxRank], in_strides[kMaxRank], out_strides[kMaxRank], stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= in_dims[d];
  }
  stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    dims[d] = in_dims[perm[d]];
    in_strides[d] = strides[perm[d]];
    out_strides[d] = stride;
    stride *= dims[d];
  }
  const auto span = [&](const int64_t* values) { return std::span<const int64_t>(values, static_cast<size_t>(rank)); };
  return plan_copy(elem_bytes, span(dims), span(in_strides), span(out_strides), plan);
}

}  // namespace epona
