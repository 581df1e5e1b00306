#pragma once
#include <cstdint>
#include <string>

#include "ops/kernel.h"

namespace epona {

enum class ResizeMode { nearest, linear, cubic };

/// The attributes of Resize (and Upsample) that say how one axis is sampled.
struct ResizeRule {
  enum class Coordinates {
    half_pixel,
    half_pixel_symmetric,
    pytorch_half_pixel,
    align_corners,
    asymmetric,
    tf_crop_and_resize,
    tf_half_pixel_for_nn
  };
  enum class Nearest { round_prefer_floor, round_prefer_ceil, floor, ceil, simple };

  /// Reads the attributes; `simple` and asymmetric for Upsample and Resize-10, which had none.
  explicit ResizeRule(const NodeInfo& info);

  ResizeMode mode = ResizeMode::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  Nearest nearest = Nearest::round_prefer_floor;
  bool antialias = false, exclude_outside = false;
  float cubic_a = -0.75f, extrapolation = 0;
};

/// One axis: its lengths, its scale, whether the scale was given (so that in * scale need not be whole) and its region.
struct ResizeAxis {
  int64_t in = 1, out = 1;
  float scale = 1;
  bool from_scale = false;
  float roi_begin = 0, roi_end = 1;
  bool changes(const ResizeRule& rule) const {
    return in != out || scale != 1 ||
           (rule.coordinates == ResizeRule::Coordinates::tf_crop_and_resize && (roi_begin != 0 || roi_end != 1));
  }
};

/// Input positions that make up one output position.
int tap_count(const ResizeRule& rule, const ResizeAxis& axis);
/// Fills out x tap_count indices (AxisTaps::kOutside first where the position takes the extrapolation value) and,
/// unless weight is null (nearest), weights.
void fill_taps(const ResizeRule& rule, const ResizeAxis& axis, int32_t* index, double* weight);

}  // namespace epona
