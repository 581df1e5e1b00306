#pragma once
#include <cstdint>

#include "base/shape.h"
#include "kernels/conv.h"

namespace epona {

/// How many groups of a grouped convolution have to be taken together to have a multiple of 16 channels on both sides;
/// 0 when that takes more groups than there are.
inline int64_t merged_groups(int64_t in_channels, int64_t out_channels, int64_t groups) {
  const int64_t in = in_channels / groups, out = out_channels / groups;
  int64_t merged = 1;
  while (in * merged % kChannelBlock != 0 || out * merged % kChannelBlock != 0) merged *= 2;  // 16 at most
  return groups % merged == 0 ? merged : 0;
}

/// The one or two spatial dims of an image as height and width; one dim is a width under a height of `other`.
struct Shape2 {
  int64_t h, w;
  static Shape2 of(const Shape& dims, int64_t other) {
    if (dims.empty()) return {other, other};
    return dims.rank() == 1 ? Shape2{other, dims[0]} : Shape2{dims[0], dims[1]};
  }
};

}  // namespace epona
