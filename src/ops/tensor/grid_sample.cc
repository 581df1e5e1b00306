#include <algorithm>
#include <array>
#include <cmath>

#include "ops/convert.h"
#include "ops/registry.h"

namespace epona {
namespace {

constexpr int kMaxDims = 3;   // spatial dims
constexpr int kMaxTaps = 64;  // 4^3

/// GridSample: the input sampled at the points of a grid, whose coordinates run over [-1, 1]. Two or three spatial
/// dims.
class GridSample final : public Kernel {
 public:
  explicit GridSample(const NodeInfo& info) : align_(info.attr("align_corners", 0) != 0) {
    std::string mode = info.attr("mode", info.opset() < 20 ? "bilinear" : "linear");
    std::string padding = info.attr("padding_mode", "zeros");
    if (mode == "nearest")
      mode_ = Mode::nearest;
    else if (mode == "bilinear" || mode == "linear")
      mode_ = Mode::linear;
    else if (mode == "bicubic" || mode == "cubic")
      mode_ = Mode::cubic;
    else
      info.refuse(Code::invalid_graph, "unknown mode '", mode, "'");
    if (padding == "zeros")
      padding_ = Padding::zeros;
    else if (padding == "border")
      padding_ = Padding::border;
    else if (padding == "reflection")
      padding_ = Padding::reflection;
    else
      info.refuse(Code::invalid_graph, "unknown padding_mode '", padding, "'");
    for (int i : {0, 1})
      if (!is_float(info.in_type(i)) && !(i == 0 && is_integer(info.in_type(0))))
        info.refuse(Code::not_implemented, "type ", info.in_type(i), " of input ", i);
    wide_ = type_bits(info.in_type(0)) == 64 || type_bits(info.in_type(1)) == 64;
  }
  void shapes(ShapeContext& c) const override {
    const Shape &in = c.in(0), &grid = c.in(1);
    int dims = in.rank() - 2;
    if (dims < 1 || dims > kMaxDims || grid.rank() != in.rank() || grid[0] != in[0] || grid.back() != dims)
      c.refuse("a grid of shape ", grid, " does not fit input of shape ", in);
    Shape out{in[0], in[1]};
    for (int i = 1; i <= dims; ++i) out.push_back(grid[i]);
    if (out.size() && !in.size()) c.refuse("an input of shape ", in, " has nothing to sample");
    c.out(0, out);
    // What is not of the working type is converted first.
    int64_t size = wide_ ? 8 : 4, elements = 0;
    for (int64_t n : {in.size(), grid.size(), out.size()}) elements = checked_add(elements, checked_add(n, 16));
    c.workspace(static_cast<size_t>(checked_mul(elements, size)));
  }
  void run(const RunContext& c) const override { wide_ ? run_as<double>(c) : run_as<float>(c); }

 private:
  enum class Mode { nearest, linear, cubic };
  enum class Padding { zeros, border, reflection };

  template <class T>
  void run_as(const RunContext& c) const {
    Tensor& out = c.out(0);
    if (out.size() == 0) return;
    T* scratch = c.workspace_as<T>();
    auto working = [&](const Tensor& tensor) -> const T* {
      if (tensor.type == data_type_of<T>) return tensor.as<T>();
      T* to = scratch;
      scratch += (tensor.size() + 15) / 16 * 16;
      convert_elements(tensor.type, tensor.data, data_type_of<T>, to, 0, tensor.size());
      return to;
    };
    const T *in = working(c.in(0)), *grid = working(c.in(1));
    T* result = out.type == data_type_of<T> ? out.as<T>() : scratch;
    const Shape& in_shape = c.in(0).shape;
    int dims = in_shape.rank() - 2;
    int64_t channels = in_shape[1], plane = in_shape.size(2, in_shape.rank()),
            points = out.shape.size(2, out.shape.rank());
    int taps = mode_ == Mode::nearest ? 1 : mode_ == Mode::linear ? 1 << dims : 1 << 2 * dims;
    c.pool().parallel_for(in_shape[0] * points, 20 + static_cast<double>(taps * channels),
                          [&](int64_t begin, int64_t end) {
                            int64_t offset[kMaxTaps];
                            T weight[kMaxTaps];
                            for (int64_t p = begin; p < end; ++p) {
                              int n = sample_point(in_shape, grid + p * dims, offset, weight);
                              const T* from = in + p / points * channels * plane;
                              T* to = result + p / points * channels * points + p % points;
                              for (int64_t ch = 0; ch < channels; ++ch, from += plane, to += points) {
                                T sum = 0;
                                for (int i = 0; i < n; ++i) sum += weight[i] * from[offset[i]];
                                *to = sum;
                              }
                            }
                          });
    if (out.type == data_type_of<T>) return;
    if (is_integer(out.type))
      for (int64_t i = 0; i < out.size(); ++i) result[i] = std::nearbyint(result[i]);
    convert_elements(data_type_of<T>, result, out.type, out.data, 0, out.size());
  }

  /// Fills the taps of one point; returns their number. Taps that fall on zero padding are left out.
  template <class T>
  int sample_point(const Shape& in, const T* point, int64_t* offset, T* weight) const {
    int dims = in.rank() - 2, taps = 1;
    offset[0] = 0, weight[0] = 1;
    for (int d = 0; d < dims; ++d) {
      int64_t length = in[2 + d];
      T low = align_ ? T(0) : T(-0.5), high = static_cast<T>(length) - (align_ ? T(1) : T(0.5));
      T x = point[dims - 1 - d];  // the grid has the last dim first
      x = align_ ? (x + 1) / 2 * static_cast<T>(length - 1) : ((x + 1) * static_cast<T>(length) - 1) / 2;
      if (mode_ == Mode::nearest) x = std::nearbyint(x);
      // For cubic only the taps are moved, as in PyTorch.
      if (mode_ != Mode::cubic && !(x >= low && x <= high)) {
        if (padding_ == Padding::border) x = std::clamp(x, T(0), static_cast<T>(length - 1));
        if (padding_ == Padding::reflection) x = reflect(x, low, high);
      }
      if (!(std::abs(x) < T(1e9))) x = T(-1e9);  // far away or not a number: outside
      int64_t index[4];
      T factor[4];
      int n = taps_of(x, index, factor);
      int kept = 0;
      for (int k = 0; k < n; ++k) {
        if (index[k] < 0 || index[k] >= length) {
          if (padding_ == Padding::zeros) continue;
          T at = static_cast<T>(index[k]);
          if (padding_ == Padding::reflection) at = reflect(at, low, high);
          index[k] = static_cast<int64_t>(std::clamp(at, T(0), static_cast<T>(length - 1)));
        }
        index[kept] = index[k];
        factor[kept++] = factor[k];
      }
      // The product of the taps so far with those of this dim, from the back so that it can be done in place.
      for (int t = taps - 1; t >= 0; --t) {
        int64_t base = offset[t] * length;
        T w = weight[t];
        for (int k = kept - 1; k >= 0; --k)
          offset[t * kept + k] = base + index[k], weight[t * kept + k] = w * factor[k];
      }
      taps *= kept;
    }
    return taps;
  }
  template <class T>
  int taps_of(T x, int64_t* index, T* factor) const {
    if (mode_ == Mode::nearest) {
      index[0] = static_cast<int64_t>(x);
      factor[0] = 1;
      return 1;
    }
    T floor = std::floor(x), r = x - floor;
    int64_t first = static_cast<int64_t>(floor);
    if (mode_ == Mode::linear) {
      index[0] = first, index[1] = first + 1;
      factor[0] = 1 - r, factor[1] = r;
      return 2;
    }
    const T a = T(-0.75);
    auto near = [&](T d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    auto far = [&](T d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    T all[4] = {far(r + 1), near(r), near(1 - r), far(2 - r)};
    for (int k = 0; k < 4; ++k) index[k] = first - 1 + k, factor[k] = all[k];
    return 4;
  }
  template <class T>
  static T reflect(T x, T low, T high) {
    T range = high - low;
    if (!(range > 0)) return low;
    T distance = x < low ? low - x : x > high ? x - high : T(0);
    if (distance == 0) return x;
    T turns = std::floor(distance / range), rest = distance - turns * range;
    bool even = std::fmod(turns, T(2)) == 0;
    return (x < low) == even ? low + rest : high - rest;
  }

  Mode mode_;
  Padding padding_;
  bool align_, wide_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(grid_sample) {
  r.add({.name = "GridSample", .since = 16, .make = make_kernel<GridSample>});
  r.add({.name = "GridSample", .domain = "com.microsoft", .make = make_kernel<GridSample>});
}
