#include "ops/tensor/resize_util.h"

#include <algorithm>
#include <cmath>

#include "kernels/resample.h"

namespace epona {
namespace {

using Coordinates = ResizeRule::Coordinates;
using Nearest = ResizeRule::Nearest;

template <class Enum>
Enum choose(const NodeInfo& info, const char* key, const std::string& name,
            std::initializer_list<std::pair<const char*, Enum>> known) {
  for (auto& [text, value] : known)
    if (name == text) return value;
  info.refuse(Code::invalid_graph, "unknown ", key, " '", name, "'");
}

/// Where an output position lies in the input. In float, as other runtimes compute it: near ties the result depends on
/// it.
float coordinate(const ResizeRule& rule, const ResizeAxis& axis, int64_t position) {
  float x = static_cast<float>(position), in = static_cast<float>(axis.in), out = static_cast<float>(axis.out);
  float length = axis.from_scale ? axis.scale * in : out;  // the standard's length_resized may be a fraction
  switch (rule.coordinates) {
    case Coordinates::asymmetric:
      return x / axis.scale;
    case Coordinates::align_corners:
      return length == 1 ? 0 : x * (in - 1) / (length - 1);
    case Coordinates::pytorch_half_pixel:
      return length > 1 ? (x + 0.5f) / axis.scale - 0.5f : -0.5f;
    case Coordinates::tf_half_pixel_for_nn:
      return (x + 0.5f) / axis.scale;
    case Coordinates::half_pixel_symmetric: {
      float offset = in / 2 * (1 - out / length);
      return offset + (x + 0.5f) / axis.scale - 0.5f;
    }
    case Coordinates::tf_crop_and_resize: {
      float span = (axis.roi_end - axis.roi_begin) * (in - 1);
      return axis.roi_begin * (in - 1) + (length > 1 ? x * span / (length - 1) : span / 2);
    }
    default:
      return (x + 0.5f) / axis.scale - 0.5f;
  }
}

int64_t nearest_index(Nearest mode, float x, bool shrinks) {
  switch (mode) {
    case Nearest::floor:
      return static_cast<int64_t>(std::floor(x));
    case Nearest::ceil:
      return static_cast<int64_t>(std::ceil(x));
    case Nearest::round_prefer_ceil:
      return static_cast<int64_t>(std::floor(x + 0.5f));
    case Nearest::simple:
      return static_cast<int64_t>(shrinks ? std::ceil(x) : std::floor(x));
    default:
      return static_cast<int64_t>(std::ceil(x - 0.5f));
  }
}

double filter(const ResizeRule& rule, double distance) {
  double x = std::abs(distance), a = rule.cubic_a;
  if (rule.mode == ResizeMode::linear) return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// By how much the filter is narrowed in input units: antialiasing stretches it when the axis shrinks.
double filter_scale(const ResizeRule& rule, const ResizeAxis& axis) {
  return rule.antialias ? std::min<double>(axis.scale, 1) : 1;
}

}  // namespace

ResizeRule::ResizeRule(const NodeInfo& info) {
  std::string name = info.attr("mode", "nearest");
  if (name == "bilinear") name = "linear";  // Upsample-1
  mode = choose<ResizeMode>(
      info, "mode", name,
      {{"nearest", ResizeMode::nearest}, {"linear", ResizeMode::linear}, {"cubic", ResizeMode::cubic}});
  if (info.node().op == "Upsample" || info.opset() < 11) {
    coordinates = Coordinates::asymmetric;
    nearest = Nearest::simple;
    return;
  }
  coordinates = choose<Coordinates>(info, "coordinate_transformation_mode",
                                    info.attr("coordinate_transformation_mode", "half_pixel"),
                                    {{"half_pixel", Coordinates::half_pixel},
                                     {"half_pixel_symmetric", Coordinates::half_pixel_symmetric},
                                     {"pytorch_half_pixel", Coordinates::pytorch_half_pixel},
                                     {"align_corners", Coordinates::align_corners},
                                     {"asymmetric", Coordinates::asymmetric},
                                     {"tf_crop_and_resize", Coordinates::tf_crop_and_resize},
                                     {"tf_half_pixel_for_nn", Coordinates::tf_half_pixel_for_nn}});
  nearest = choose<Nearest>(info, "nearest_mode", info.attr("nearest_mode", "round_prefer_floor"),
                            {{"round_prefer_floor", Nearest::round_prefer_floor},
                             {"round_prefer_ceil", Nearest::round_prefer_ceil},
                             {"floor", Nearest::floor},
                             {"ceil", Nearest::ceil}});
  antialias = info.attr("antialias", 0) != 0 && mode != ResizeMode::nearest;
  exclude_outside = info.attr("exclude_outside", 0) != 0;
  cubic_a = info.attr("cubic_coeff_a", -0.75f);
  extrapolation = info.attr("extrapolation_value", 0.0f);
}

int tap_count(const ResizeRule& rule, const ResizeAxis& axis) {
  if (rule.mode == ResizeMode::nearest) return 1;
  double support = (rule.mode == ResizeMode::linear ? 1 : 2) / filter_scale(rule, axis);
  return 2 * static_cast<int>(std::ceil(std::min(support, 1e6)));
}

void fill_taps(const ResizeRule& rule, const ResizeAxis& axis, int32_t* index, double* weight) {
  int taps = tap_count(rule, axis);
  double scale = filter_scale(rule, axis);
  auto clamp = [&](int64_t i) { return static_cast<int32_t>(std::clamp<int64_t>(i, 0, axis.in - 1)); };
  for (int64_t i = 0; i < axis.out; ++i, index += taps) {
    float x = coordinate(rule, axis, i);
    if (rule.coordinates == Coordinates::tf_crop_and_resize && !(x >= 0 && x <= static_cast<float>(axis.in - 1))) {
      index[0] = AxisTaps::kOutside;
      if (weight) weight += taps;
      continue;
    }
    x = std::clamp(x, -2e9f, 2e9f);
    if (rule.mode == ResizeMode::nearest) {
      index[0] = clamp(nearest_index(rule.nearest, x, axis.scale < 1));
      continue;
    }
    int64_t first = static_cast<int64_t>(std::floor(x)) - taps / 2 + 1;
    double sum = 0;
    for (int t = 0; t < taps; ++t) {
      bool outside = first + t < 0 || first + t >= axis.in;
      weight[t] = rule.exclude_outside && outside ? 0 : filter(rule, (static_cast<double>(first + t) - x) * scale);
      index[t] = clamp(first + t);
      sum += weight[t];
    }
    if ((rule.antialias || rule.exclude_outside) && sum != 0)
      for (int t = 0; t < taps; ++t) weight[t] /= sum;
    weight += taps;
  }
}

}  // namespace epona
