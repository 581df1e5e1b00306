#include <cstring>

#include "kernels/strided_copy.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Copies rows of `bytes` named by indices; a word-sized row is moved as one word.
template <class Word, class Index>
void gather_rows(const char* in, char* out, const Index* indices, int64_t begin, int64_t end, int64_t count,
                 int64_t dim, int64_t bytes) {
  int64_t j = begin % count;
  in += begin / count * dim * bytes;
  for (int64_t i = begin; i < end; ++i, ++j) {
    if (j == count) {
      j = 0;
      in += dim * bytes;
    }
    int64_t at = indices[j];
    const char* from = in + (at < 0 ? at + dim : at) * bytes;
    if constexpr (std::is_void_v<Word>) {
      std::memcpy(out + i * bytes, from, static_cast<size_t>(bytes));
    } else {
      std::memcpy(out + i * bytes, from, sizeof(Word));
    }
  }
}

template <class Index>
void gather(ThreadPool& pool, const char* in, char* out, const Index* indices, int64_t outer, int64_t count,
            int64_t dim, int64_t bytes) {
  auto rows = bytes == 4   ? gather_rows<uint32_t, Index>
              : bytes == 8 ? gather_rows<uint64_t, Index>
                           : gather_rows<void, Index>;
  pool.parallel_for(outer * count, 3 + static_cast<double>(bytes) * 0.1,
                    [&](int64_t begin, int64_t end) { rows(in, out, indices, begin, end, count, dim, bytes); });
}

/// Gather: rows of the input along an axis, named by indices of any shape.
class Gather final : public Kernel {
 public:
  explicit Gather(const NodeInfo& info) : axis_(info.attr("axis", 0)) {}
  void shapes(ShapeContext& c) const override {
    const Shape &in = c.in(0), &indices = c.in(1);
    int axis = resolve_axis(c, axis_, in.rank());
    Shape out;
    for (int i = 0; i < axis; ++i) out.push_back(in[i]);
    for (int64_t dim : indices) out.push_back(dim);
    for (int i = axis + 1; i < in.rank(); ++i) out.push_back(in[i]);
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor &in = c.in(0), &indices = c.in(1);
    Tensor& out = c.out(0);
    if (out.size() == 0) return;
    check_index_type(c, indices, "indices");
    int rank = in.shape.rank(), axis = resolve_axis(c, axis_, rank);
    int64_t outer = in.shape.size(0, axis), dim = in.shape[axis], inner = in.shape.size(axis + 1, rank);
    int64_t count = indices.size();
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = int_at(indices, i);
      if (at < -dim || at >= dim)
        c.refuse("index ", at, " is out of range [", -dim, ",", dim - 1, "] for axis ", axis, " of input of shape ",
                 in.shape);
    }
    int64_t bits = inner * static_cast<int64_t>(type_bits(in.type));
    if (in.type == DataType::string || bits % 8) {
      for (int64_t i = 0; i < outer * count; ++i) {
        int64_t at = int_at(indices, i % count);
        copy_elements(in.type, inner, in.data, (i / count * dim + (at < 0 ? at + dim : at)) * inner, out.data,
                      i * inner);
      }
      return;
    }
    const char* from = in.as<char>();
    if (indices.type == DataType::int32)
      gather(c.pool(), from, out.as<char>(), indices.as<int32_t>(), outer, count, dim, bits / 8);
    else
      gather(c.pool(), from, out.as<char>(), indices.as<int64_t>(), outer, count, dim, bits / 8);
  }

 private:
  int64_t axis_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(gather) { r.add({.name = "Gather", .since = 1, .make = make_kernel<Gather>}); }
