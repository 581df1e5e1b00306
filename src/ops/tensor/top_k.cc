#include <algorithm>
#include <vector>

#include "kernels/strided_copy.h"
#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/registry.h"
#include "ops/tensor/sort_key_util.h"

namespace epona {
namespace {

/// A candidate: its key (smaller is better) and where it is. Among equals the lower index wins.
struct Wide {
  uint64_t key;
  uint64_t index;
  friend bool operator<(const Wide& a, const Wide& b) { return a.key != b.key ? a.key < b.key : a.index < b.index; }
  static Wide make(uint64_t key, int64_t index) { return {key, static_cast<uint64_t>(index)}; }
  int64_t where() const { return static_cast<int64_t>(index); }
};

/// Types of up to 32 bits: key and index in one word, so that the whole is one integer compare.
struct Narrow {
  uint64_t word;
  friend bool operator<(const Narrow& a, const Narrow& b) { return a.word < b.word; }
  static Narrow make(uint32_t key, int64_t index) {
    return {static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(index)};
  }
  int64_t where() const { return static_cast<int64_t>(word & 0xffffffffu); }
};

/// Leaves the k smallest keys, sorted, in buffer[0..k). The buffer has room for 2k: when full it is cut back to k, and
/// from then on what is worse than the k-th does not enter, so most elements cost one compare.
template <class C, class Key>
void select(C* buffer, const Key* keys, int64_t n, int64_t k) {
  int64_t filled = 0;
  bool bounded = false;  // buffer[k - 1] is the k-th best of what was seen up to the last cut
  for (int64_t i = 0; i < n; ++i) {
    C candidate = C::make(keys[i], i);
    if (bounded && !(candidate < buffer[k - 1])) continue;
    if (filled == 2 * k) {
      std::nth_element(buffer, buffer + k - 1, buffer + filled);
      filled = k;
      bounded = true;
      if (!(candidate < buffer[k - 1])) continue;
    }
    buffer[filled++] = candidate;
  }
  if (filled > k) std::nth_element(buffer, buffer + k - 1, buffer + filled);
  std::sort(buffer, buffer + k);
}

template <class T>
using KeyOf = decltype(sort_key(T()));

template <class T>
void fill_keys(const void* in, int64_t n, int64_t stride, bool largest, void* out) {
  const T* from = static_cast<const T*>(in);
  KeyOf<T>*to = static_cast<KeyOf<T>*>(out), flip = largest ? ~KeyOf<T>{0} : 0;
  for (int64_t i = 0; i < n; ++i) to[i] = sort_key(from[i * stride]) ^ flip;
}

/// TopK along an axis: k attribute in opset 1, input from 10; largest, sorted from 11. NaN counts as the largest
/// number.
class TopK final : public Kernel {
 public:
  explicit TopK(const NodeInfo& info)
      : axis_(info.attr("axis", -1)),
        k_(info.attr("k", -1)),
        largest_(info.attr("largest", 1) != 0),
        from_attribute_(info.opset() < 10) {
    if (!dispatch(info.in_type(0), NumericTypes{}, [&]<class T>() { fill_keys_ = fill_keys<T>; }))
      info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    int axis = resolve_axis(c, axis_, out.rank());
    int64_t k = k_;
    if (!from_attribute_) {
      if (!c.value(1)) c.refuse("k must be given");
      k = one_int(c, *c.value(1), "k");
    }
    if (k < 0 || k > out[axis])
      c.refuse("k is ", k, " but axis ", axis, " of input of shape ", out, " has ", out[axis]);
    out[axis] = k;
    c.out(0, out);
    c.out(1, out);
    int64_t key_bytes = c.in(0)[axis] * static_cast<int64_t>(sizeof(uint64_t));
    c.workspace(static_cast<size_t>(checked_add(key_bytes, checked_mul(k, 2 * sizeof(Wide)))));
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    if (type_bits(in.type) <= 32 && in.shape[resolve_axis(c, axis_, in.shape.rank())] <= int64_t{0xffffffff})
      run_as<Narrow, uint32_t>(c);
    else if (type_bits(in.type) <= 32)
      run_as<Wide, uint32_t>(c);
    else
      run_as<Wide, uint64_t>(c);
  }

 private:
  template <class C, class Key>
  void run_as(const RunContext& c) const {
    const Tensor& in = c.in(0);
    const Shape& out = c.wants(0) ? c.out(0).shape : c.out(1).shape;
    int rank = out.rank(), axis = resolve_axis(c, axis_, rank);
    int64_t outer = out.size(0, axis), n = in.shape[axis], k = out[axis], inner = out.size(axis + 1, rank);
    if (k == 0) return;
    int64_t bytes = static_cast<int64_t>(type_bits(in.type) / 8);
    int64_t* indices = c.out_data<int64_t>(1);
    C* buffer = c.workspace_as<C>();
    Key* keys = reinterpret_cast<Key*>(buffer + 2 * k);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t j = 0; j < inner; ++j) {
        const char* from = in.as<char>() + (o * n * inner + j) * bytes;
        fill_keys_(from, n, inner, largest_, keys);
        select(buffer, keys, n, k);
        for (int64_t i = 0; i < k; ++i) {
          int64_t at = buffer[i].where(), to = (o * k + i) * inner + j;
          if (c.wants(0)) copy_elements(in.type, 1, from, at * inner, c.out(0).data, to);
          if (indices) indices[to] = at;
        }
      }
    }
  }

  int64_t axis_, k_;
  bool largest_, from_attribute_;
  void (*fill_keys_)(const void*, int64_t, int64_t, bool, void*) = nullptr;
};

}  // namespace
}  // namespace epona

EPONA_OPS(top_k) { r.add({.name = "TopK", .since = 1, .make = make_kernel<TopK>, .shape_inputs = 2}); }
