#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/strided_copy.h"
#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/tensor/sort_key_util.h"

namespace epona {
namespace {

using UniqueTypes = decltype(NumericTypes{} + Types<bool>{});

/// Unique: the distinct elements (or slices along an axis), sorted or in order of appearance, with the first index of
/// each, the number of each, and for every input the index of its class. All NaN are one class, the last.
class Unique final : public Kernel {
 public:
  explicit Unique(const NodeInfo& info)
      : axis_(info.attr("axis", 0)), flat_(!info.has_attr("axis")), sorted_(info.attr("sorted", 1) != 0) {
    if (!info.node().domain.empty()) sorted_ = false, first_ = -1, inverse_ = 1, counts_ = 2;  // com.microsoft
    DataType type = info.in_type(0);
    if (type != DataType::string && !contains(UniqueTypes{}, type)) info.refuse(Code::not_implemented, "type ", type);
  }
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    int rank = in.shape.rank(), axis = flat_ ? 0 : resolve_axis(c, axis_, rank);
    int64_t items = flat_ ? in.size() : in.shape[axis], outer = flat_ ? 1 : in.shape.size(0, axis);
    int64_t inner = flat_ ? 1 : in.shape.size(axis + 1, rank), length = outer * inner;
    std::vector<uint64_t> keys = keys_of(in);
    // Slice i as a list of keys: keys[(o * items + i) * inner + j].
    auto compare = [&](int64_t a, int64_t b) {
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t j = 0; j < inner; ++j) {
          uint64_t x = keys[(o * items + a) * inner + j], y = keys[(o * items + b) * inner + j];
          if (x != y) return x < y ? -1 : 1;
        }
      return 0;
    };
    std::vector<int64_t> order(static_cast<size_t>(items));
    std::iota(order.begin(), order.end(), 0);
    if (length == 1)
      std::sort(order.begin(), order.end(),
                [&](int64_t a, int64_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
    else
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
    // Classes in sorted order: each is a run of `order`, which begins with its first index.
    std::vector<int64_t> first, count, class_of(static_cast<size_t>(items));
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || compare(order[i - 1], order[i]) != 0) {
        first.push_back(order[i]);
        count.push_back(0);
      }
      ++count.back();
      class_of[static_cast<size_t>(order[i])] = static_cast<int64_t>(first.size()) - 1;
    }
    std::vector<int64_t> place(first.size());  // place[k]: the class that comes k-th
    std::iota(place.begin(), place.end(), 0);
    if (!sorted_) std::sort(place.begin(), place.end(), [&](int64_t a, int64_t b) { return first[a] < first[b]; });
    write(c, in, flat_ ? -1 : axis, place, first, count, class_of);
  }

 private:
  static std::vector<uint64_t> keys_of(const Tensor& in) {
    std::vector<uint64_t> keys(static_cast<size_t>(in.size()));
    if (in.type == DataType::string) {
      // A string's key is its rank among the distinct ones.
      std::vector<std::string_view> words(in.as<std::string>(), in.as<std::string>() + in.size());
      std::sort(words.begin(), words.end());
      words.erase(std::unique(words.begin(), words.end()), words.end());
      for (size_t i = 0; i < keys.size(); ++i)
        keys[i] = static_cast<uint64_t>(
            std::lower_bound(words.begin(), words.end(), std::string_view(in.as<std::string>()[i])) - words.begin());
      return keys;
    }
    dispatch(in.type, UniqueTypes{}, [&]<class T>() {
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = sort_key(in.as<T>()[i]);
    });
    return keys;
  }

  void write(const RunContext& c, const Tensor& in, int axis, const std::vector<int64_t>& place,
             const std::vector<int64_t>& first, const std::vector<int64_t>& count,
             const std::vector<int64_t>& class_of) const {
    int64_t classes = static_cast<int64_t>(first.size());
    if (c.wants(0)) {
      Shape shape = axis < 0 ? Shape{classes} : in.shape;
      if (axis >= 0) shape[axis] = classes;
      Tensor& out = c.allocate(0, shape, in.type);
      int64_t items = axis < 0 ? in.size() : in.shape[axis], outer = axis < 0 ? 1 : in.shape.size(0, axis);
      int64_t inner = axis < 0 ? 1 : in.shape.size(axis + 1, in.shape.rank());
      for (int64_t o = 0; o < outer; ++o)
        for (int64_t k = 0; k < classes; ++k)
          copy_elements(in.type, inner, in.data, (o * items + first[place[k]]) * inner, out.data,
                        (o * classes + k) * inner);
    }
    auto list = [&](int output, int64_t n) { return c.allocate(output, {n}, DataType::int64).as<int64_t>(); };
    if (first_ > 0 && c.wants(first_)) {
      int64_t* out = list(first_, classes);
      for (int64_t k = 0; k < classes; ++k) out[k] = first[place[k]];
    }
    if (c.wants(inverse_)) {
      std::vector<int64_t> rank(place.size());
      for (int64_t k = 0; k < classes; ++k) rank[place[k]] = k;
      int64_t* out = list(inverse_, static_cast<int64_t>(class_of.size()));
      for (size_t i = 0; i < class_of.size(); ++i) out[i] = rank[class_of[i]];
    }
    if (c.wants(counts_)) {
      int64_t* out = list(counts_, classes);
      for (int64_t k = 0; k < classes; ++k) out[k] = count[place[k]];
    }
  }

  int64_t axis_;
  bool flat_, sorted_;
  int first_ = 1, inverse_ = 2, counts_ = 3;  ///< which outputs they are
};

}  // namespace
}  // namespace epona

EPONA_OPS(unique) {
  r.add({.name = "Unique", .since = 11, .make = make_kernel<Unique>, .dynamic = true});
  r.add({.name = "Unique", .domain = "com.microsoft", .make = make_kernel<Unique>, .dynamic = true});
}
