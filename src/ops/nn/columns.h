#pragma once
#include <algorithm>

#include "ops/nn/window.h"

namespace epona {

/// One row of the matrix whose columns are a convolution's windows: to[i] = what tap `tap` of output position begin + i
/// meets in a plane of the image, `padding` outside it.
template <class T>
void gather_row(const Window& w, const T* plane, int64_t tap, int64_t begin, int64_t count, T padding, T* to) {
  const int rank = w.rank(), last = rank - 1;
  const int64_t width = w.out[last], stride = w.stride[last];
  Shape taps(rank, 0), at(rank, 0);
  for (int d = last; d >= 0; --d) {
    taps[d] = tap % w.kernel[d];
    tap /= w.kernel[d];
  }
  int64_t line = begin / width;
  for (int d = last - 1; d >= 0; --d) {
    at[d] = line % w.out[d];
    line /= w.out[d];
  }
  int64_t first = 0, stop = 0;
  w.valid(last, taps[last], first, stop);
  first = std::min(first, width);
  stop = std::clamp(stop, first, width);
  // Each turn takes what is left of a line.
  for (int64_t from = begin % width, n; count > 0; count -= n, to += n, from = 0) {
    n = std::min(count, width - from);
    line = 0;
    bool inside = true;
    for (int d = 0; d < last; ++d) {
      const int64_t i = at[d] * w.stride[d] + taps[d] * w.dilation[d] - w.pad[d];
      inside = inside && i >= 0 && i < w.in[d];
      line = line * w.in[d] + i;
    }
    const int64_t a = inside ? std::clamp(first, from, from + n) - from : n, b = std::clamp(stop - from, a, n);
    std::fill_n(to, a, padding);
    if (b > a) {
      const T* source = plane + line * w.in[last] + taps[last] * w.dilation[last] - w.pad[last] + (from + a) * stride;
      if (stride == 1)
        std::copy_n(source, b - a, to + a);
      else
        for (int64_t i = a; i < b; ++i) to[i] = source[(i - a) * stride];
    }
    std::fill(to + b, to + n, padding);
    for (int d = last - 1; d >= 0 && ++at[d] == w.out[d]; --d) at[d] = 0;
  }
}

}  // namespace epona
