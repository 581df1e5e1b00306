#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/resample.h"
#include "kernels/strided_copy.h"
#include "ops/convert.h"
#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/tensor/resize_util.h"

namespace epona {
namespace {

/// Resize and its older name Upsample. Nearest moves elements of any type; linear and cubic compute in float (double
/// for types that float does not hold), one axis after the other.
class Resize final : public Kernel {
 public:
  explicit Resize(const NodeInfo& info)
      : rule_(info), axes_(info.ints("axes")), has_axes_(info.has_attr("axes")), scales_(info.floats("scales")) {
    policy_ = info.attr("keep_aspect_ratio_policy", "stretch");
    if (policy_ != "stretch" && policy_ != "not_larger" && policy_ != "not_smaller")
      info.refuse(Code::invalid_graph, "unknown keep_aspect_ratio_policy '", policy_, "'");
    bool upsample = info.node().op == "Upsample";
    if (upsample && info.has_attr("height_scale"))
      scales_ = {1, 1, info.attr("height_scale", 1.0f), info.attr("width_scale", 1.0f)};
    scales_input_ = !scales_.empty() ? -1 : upsample || info.opset() < 11 ? 1 : 2;
    DataType type = info.in_type(0);
    if (rule_.mode != ResizeMode::nearest && !is_float(type) && !is_integer(type))
      info.refuse(Code::not_implemented, "linear and cubic resizing of type ", type);
    wide_ = type == DataType::float64 || type == DataType::int32 || type == DataType::uint32 ||
            type == DataType::int64 || type == DataType::uint64;
  }

  void shapes(ShapeContext& c) const override {
    Axes axes = resolve(c);
    Shape out = c.in(0);
    for (int i = 0; i < out.rank(); ++i) {
      out[i] = axes[i].out;
      if (axes[i].in > std::numeric_limits<int32_t>::max()) c.refuse("dim ", i, " is too long to resize");
      if (axes[i].in == 0 && axes[i].out != 0) c.refuse("an empty dim cannot be resized to ", axes[i].out);
    }
    c.out(0, out);
    if (c.in(0).size() == 0 || out.size() == 0) return;
    Layout layout = lay_out(axes, c.in(0));
    c.workspace(layout.bytes);
  }

  void run(const RunContext& c) const override {
    if (c.out(0).size() == 0) return;
    Axes axes = resolve(c);
    if (rule_.mode == ResizeMode::nearest)
      nearest(c, axes);
    else if (wide_)
      interpolate<double>(c, axes);
    else
      interpolate<float>(c, axes);
  }

 private:
  static constexpr int kMaxRank = 16;
  using Axes = std::array<ResizeAxis, kMaxRank>;

  /// Where the parts of the workspace begin: a table of indices and one of weights for each axis, then two buffers.
  struct Layout {
    std::array<size_t, kMaxRank> index, weight;
    size_t buffers[2];
    size_t bytes = 0;
  };
  Layout lay_out(const Axes& axes, const Shape& in) const {
    Layout layout;
    auto take = [&](size_t bytes) {
      size_t at = layout.bytes;
      layout.bytes += (bytes + 63) / 64 * 64;
      return at;
    };
    bool nearest = rule_.mode == ResizeMode::nearest;
    int64_t elements = in.size(), largest = elements;
    for (int i = 0; i < in.rank(); ++i) {
      int64_t taps = checked_mul(axes[i].out, tap_count(rule_, axes[i]));
      layout.index[i] = take(static_cast<size_t>(taps) * sizeof(int32_t));
      layout.weight[i] = nearest ? 0 : take(static_cast<size_t>(taps) * sizeof(double));
      elements = checked_mul(elements / axes[i].in, axes[i].out);
      largest = std::max(largest, elements);
    }
    size_t buffer = static_cast<size_t>(checked_mul(largest, wide_ ? sizeof(double) : sizeof(float)));
    for (size_t& at : layout.buffers) at = nearest ? 0 : take(buffer);
    return layout;
  }

  static const Tensor* input(const ShapeContext& c, int i) { return c.value(i); }
  static const Tensor* input(const RunContext& c, int i) { return c.has(i) ? &c.in(i) : nullptr; }
  static const Shape& shape(const ShapeContext& c) { return c.in(0); }
  static const Shape& shape(const RunContext& c) { return c.in(0).shape; }

  template <class Context>
  Axes resolve(const Context& c) const {
    const Shape& in = shape(c);
    int rank = in.rank(), count = has_axes_ ? static_cast<int>(axes_.size()) : rank;
    if (rank > kMaxRank) c.refuse("an input of rank ", rank, "; the most is ", kMaxRank);
    Axes axes;
    for (int i = 0; i < rank; ++i) axes[i].in = axes[i].out = in[i];
    const Tensor* scales = scales_input_ > 0 ? input(c, scales_input_) : nullptr;
    const Tensor* sizes = scales_input_ == 2 ? input(c, 3) : nullptr;
    const Tensor* roi = scales_input_ == 2 ? input(c, 1) : nullptr;
    if (scales && scales->size() == 0) scales = nullptr;  // how opset 11 leaves it out
    if (sizes && sizes->size() == 0) sizes = nullptr;
    int64_t given = sizes ? sizes->size() : scales ? scales->size() : static_cast<int64_t>(scales_.size());
    if (given == 0 && count > 0) c.refuse("scales or sizes must be given");
    if (scales && sizes) c.refuse("both scales and sizes are given");
    if (given != count) c.refuse(given, " scales or sizes for ", count, " axes of input of shape ", in);
    float common = 0;
    for (int k = 0; k < count; ++k) {
      ResizeAxis& axis = axes[has_axes_ ? resolve_axis(c, axes_[k], rank) : k];
      if (sizes) {
        check_index_type(c, *sizes, "sizes");
        axis.out = int_at(*sizes, k);
        axis.scale = static_cast<float>(axis.out) / static_cast<float>(axis.in);
        bool first = k == 0;
        common = first                     ? axis.scale
                 : policy_ == "not_larger" ? std::min(common, axis.scale)
                                           : std::max(common, axis.scale);
      } else {
        axis.scale = scales ? scales->as<float>()[k] : scales_[k];
        axis.from_scale = true;
        float out = std::floor(axis.scale * static_cast<float>(axis.in));
        if (!(axis.scale > 0) || !(out < 9e18f)) c.refuse("scale ", axis.scale, " is not a sensible number");
        axis.out = static_cast<int64_t>(out);
      }
      if (axis.out < 0) c.refuse("negative size ", axis.out);
      if (roi && rule_.coordinates == ResizeRule::Coordinates::tf_crop_and_resize) {
        if (roi->size() != 2 * count) c.refuse("roi has ", roi->size(), " numbers for ", count, " axes");
        axis.roi_begin = float_at(*roi, k);
        axis.roi_end = float_at(*roi, count + k);
      }
    }
    if (sizes && policy_ != "stretch") {
      for (int k = 0; k < count; ++k) {
        ResizeAxis& axis = axes[has_axes_ ? resolve_axis(c, axes_[k], rank) : k];
        axis.scale = common;
        axis.out = static_cast<int64_t>(std::floor(common * static_cast<float>(axis.in) + 0.5f));
      }
    }
    return axes;
  }
  static float float_at(const Tensor& tensor, int64_t i) {
    if (tensor.type == DataType::float64) return static_cast<float>(tensor.as<double>()[i]);
    if (tensor.type == DataType::float16) return tensor.as<Float16>()[i];
    return tensor.type == DataType::float32 ? tensor.as<float>()[i] : 0;
  }

  void nearest(const RunContext& c, const Axes& axes) const {
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    int rank = in.shape.rank();
    char* workspace = c.workspace_as<char>();
    Layout layout = lay_out(axes, in.shape);
    Shape strides = row_major_strides(in.shape);
    std::array<const int32_t*, kMaxRank> maps;
    int last = -1;  // the last axis that changes; behind it elements stay together
    for (int i = 0; i < rank; ++i) {
      int32_t* map = reinterpret_cast<int32_t*>(workspace + layout.index[i]);
      fill_taps(rule_, axes[i], map, nullptr);
      if (!axes[i].changes(rule_))
        for (int64_t j = 0; j < axes[i].out; ++j) map[j] = static_cast<int32_t>(j);
      else
        last = i;
      maps[i] = map;
    }
    if (last < 0) return copy_elements(in.type, in.size(), in.data, 0, out.data, 0);
    int64_t inner = in.shape.size(last + 1, rank), row = out.shape[last], rows = out.shape.size(0, last);
    alignas(16) char number[16] = {};
    std::string text;
    const void* outside = in.type == DataType::string ? static_cast<const void*>(&text) : number;
    if (is_float(in.type) || is_integer(in.type))
      convert_elements(DataType::float32, &rule_.extrapolation, in.type, number, 0, 1);
    int64_t bytes = inner * static_cast<int64_t>(type_bits(in.type)) / 8;
    bool words = in.type != DataType::string && !is_subbyte(in.type) && inner == 1 &&
                 rule_.coordinates != ResizeRule::Coordinates::tf_crop_and_resize;
    auto run_rows = [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t base = 0, rest = r;
        bool inside = true;
        for (int i = last - 1; i >= 0; rest /= out.shape[i], --i) {
          int32_t at = maps[i][rest % out.shape[i]];
          inside = inside && at >= 0;
          base += at * strides[i];
        }
        if (words && bytes == 4) {
          gather<uint32_t>(in.data, base, maps[last], row, out.data, r * row);
        } else if (words && bytes == 1) {
          gather<uint8_t>(in.data, base, maps[last], row, out.data, r * row);
        } else {
          for (int64_t j = 0; j < row; ++j) {
            int32_t at = maps[last][j];
            if (inside && at >= 0)
              copy_elements(in.type, inner, in.data, base + at * inner, out.data, (r * row + j) * inner);
            else
              fill_elements(in.type, inner, outside, out.data, (r * row + j) * inner);
          }
        }
      }
    };
    if (is_subbyte(in.type))
      run_rows(0, rows);
    else
      c.pool().parallel_for(rows, 20 + static_cast<double>(row * inner), run_rows);
  }
  template <class T>
  static void gather(const void* in, int64_t base, const int32_t* map, int64_t n, void* out, int64_t at) {
    const T* from = static_cast<const T*>(in) + base;
    T* to = static_cast<T*>(out) + at;
    for (int64_t j = 0; j < n; ++j) to[j] = from[map[j]];
  }

  template <class T>
  void interpolate(const RunContext& c, const Axes& axes) const {
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    char* workspace = c.workspace_as<char>();
    Layout layout = lay_out(axes, in.shape);
    bool direct = in.type == data_type_of<T>;
    T* buffers[2] = {reinterpret_cast<T*>(workspace + layout.buffers[0]),
                     reinterpret_cast<T*>(workspace + layout.buffers[1])};
    const T* now = in.as<T>();
    int next = 0;
    if (!direct) {
      convert_elements(in.type, in.data, data_type_of<T>, buffers[next], 0, in.size());
      now = buffers[next];
      next = 1;
    }
    int rank = in.shape.rank(), left = 0;
    for (int i = 0; i < rank; ++i) left += axes[i].changes(rule_);
    Shape dims = in.shape;
    for (int i = 0; i < rank; ++i) {
      if (!axes[i].changes(rule_)) continue;
      AxisTaps taps{axes[i].in, axes[i].out, tap_count(rule_, axes[i])};
      int32_t* index = reinterpret_cast<int32_t*>(workspace + layout.index[i]);
      double* weight = reinterpret_cast<double*>(workspace + layout.weight[i]);
      fill_taps(rule_, axes[i], index, weight);
      taps.index = index, taps.weight = weight, taps.outside = rule_.extrapolation;
      T* to = --left == 0 && direct ? out.as<T>() : buffers[next];
      resample_axis(c.pool(), taps, dims.size(0, i), dims.size(i + 1, rank), now, to);
      dims[i] = axes[i].out;
      now = to;
      next = 1 - next;
    }
    if (direct) {
      if (now == in.as<T>()) copy_elements(in.type, in.size(), in.data, 0, out.data, 0);
      return;
    }
    if (is_integer(out.type)) {
      T* rounded = const_cast<T*>(now);  // one of the two buffers
      round_to(out.type, rounded, out.size());
    }
    convert_elements(data_type_of<T>, now, out.type, out.data, 0, out.size());
  }
  /// To the nearest integer that the type holds.
  template <class T>
  static void round_to(DataType type, T* values, int64_t n) {
    double bits = static_cast<double>(type_bits(type));
    bool is_signed =
        type == DataType::int8 || type == DataType::int16 || type == DataType::int32 || type == DataType::int64;
    // For 64 bits the largest double below the limit.
    double high = std::exp2(bits - is_signed) - (bits == 64 ? 2048 : 1), low = is_signed ? -std::exp2(bits - 1) : 0;
    for (int64_t i = 0; i < n; ++i)
      values[i] = static_cast<T>(std::clamp(std::nearbyint(static_cast<double>(values[i])), low, high));
  }

  ResizeRule rule_;
  std::vector<int64_t> axes_;
  bool has_axes_, wide_;
  std::vector<float> scales_;
  int scales_input_;  ///< -1 when the scales are attributes
  std::string policy_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(resize) {
  r.add({.name = "Resize", .since = 10, .make = make_kernel<Resize>, .shape_inputs = 0xe});
  r.add({.name = "Upsample", .since = 1, .make = make_kernel<Resize>, .shape_inputs = 0x2});
}
