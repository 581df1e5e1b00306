#pragma once
#include <cstdint>

namespace epona {

/// Window of output `o` along one axis: inputs [begin, begin + count * dilation), clipped to the image; `covered`
/// counts the padding too, but not what a rounded-up last window sticks out beyond it.
struct PoolSpan {
  int64_t begin, count, covered;
  PoolSpan(int64_t o, int64_t stride, int64_t kernel, int64_t dilation, int64_t pad_before, int64_t pad_after,
           int64_t in) {
    const int64_t start = o * stride - pad_before;
    int64_t first = 0, last = kernel, end = kernel;
    while (first < last && start + first * dilation < 0) ++first;
    while (last > first && start + (last - 1) * dilation >= in) --last;
    while (end > 0 && start + (end - 1) * dilation >= in + pad_after) --end;
    begin = start + first * dilation;
    count = last - first;
    covered = end;
  }
};

}  // namespace epona
