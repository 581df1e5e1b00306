#include "ops/float_io.h"
#include "ops/nn/rotary.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// RotaryEmbedding of the standard (X, cos, sin, position_ids?) and of com.microsoft (input, position_ids, cos, sin):
/// turns pairs of elements of every head by the angles of the token's position.
class RotaryEmbedding final : public FloatKernel<RotaryEmbedding> {
 public:
  explicit RotaryEmbedding(const NodeInfo& info)
      : FloatKernel(info),
        ms_(info.node().domain == "com.microsoft"),
        interleaved_(info.attr("interleaved", 0) != 0),
        heads_(info.attr("num_heads", 0)),
        dim_(info.attr("rotary_embedding_dim", 0)),
        scale_(info.attr("scale", 1.0f)) {
    if (heads_ < 0 || dim_ < 0 || dim_ % 2) info.refuse(Code::invalid_graph, "num_heads or rotary_embedding_dim");
    if (ms_ && scale_ != 1.0f) info.refuse(Code::not_implemented, "scale other than 1");
    if (ms_ && info.attr("is_packed_batching", 0)) info.refuse(Code::not_implemented, "is_packed_batching");
  }

  void shapes(ShapeContext& c) const override {
    const Shape& x = c.in(0);
    const Shape &cos = c.in(cos_input()), &sin = c.in(cos_input() + 1);
    const Sizes s = sizes(c, x, cos.rank() ? cos.back() : 0);
    const int64_t half = (dim_ ? dim_ : s.head) / 2;
    if (2 * half > s.head) c.refuse("rotary_embedding_dim ", dim_, " is larger than the head size ", s.head);
    const bool by_position = c.has(position_input());
    const Shape expected = by_position ? Shape{cos.rank() ? cos[0] : 0, half} : Shape{s.batch, s.length, half};
    if (cos != expected || sin != cos)
      c.refuse("cos and sin caches have shapes ", cos, " and ", sin, "; expected ", expected);
    if (by_position) {
      const Shape& positions = c.in(position_input());
      bool one = ms_ && positions.size() == 1;
      if (!one && positions != Shape{s.batch, s.length})
        c.refuse("position_ids has shape ", positions, "; expected ", Shape{s.batch, s.length});
    }
    c.workspace(FloatIo::bytes(c, {x}));
    c.out(0, x);
  }

 private:
  friend FloatKernel;
  struct Sizes {
    int64_t batch, heads, length, head;
    int64_t head_step, row_step;  // elements between heads and between tokens
  };
  int position_input() const { return ms_ ? 1 : 3; }
  int cos_input() const { return ms_ ? 2 : 1; }

  template <class Context>
  Sizes sizes(const Context& c, const Shape& x, int64_t half) const {
    if (x.rank() == 4) return {x[0], x[1], x[2], x[3], x[2] * x[3], x[3]};
    if (x.rank() != 3) c.refuse("input has shape ", x, "; expected rank 3 or 4");
    // com.microsoft without num_heads: the caches tell the head size.
    const int64_t heads = heads_ ? heads_ : ms_ && half > 0 ? x[2] / (2 * half) : 0;
    if (heads < 1 || x[2] % heads)
      c.refuse("the last dim of ", x, " does not divide into ", heads, " heads (num_heads)");
    return {x[0], heads, x[1], x[2] / heads, x[2] / heads, x[2]};
  }

  template <class T>
  void compute(const RunContext& c) const {
    FloatIo io(c, 0);
    const T *x = io.in<T>(0), *cos = io.in<T>(cos_input()), *sin = io.in<T>(cos_input() + 1);
    T* y = io.out<T>(0);
    const Shape& cache = c.in(cos_input()).shape;
    const Sizes s = sizes(c, c.in(0).shape, cache.back());
    const int64_t half = cache.back();
    const int64_t* positions = c.data<int64_t>(position_input());
    const bool one = positions && c.in(position_input()).size() == 1;
    const int64_t rows = s.batch * s.length;
    if (positions)
      for (int64_t i = 0; i < (one ? 1 : rows); ++i) {
        // With one position the tokens follow from there.
        if (positions[i] < 0 || positions[i] > cache[0] - (one ? s.length : 1))
          c.refuse("position ", positions[i], " is out of range for caches of ", cache[0], " positions");
      }
    c.pool().parallel_for(rows, static_cast<double>(s.heads * s.head), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t b = r / s.length, i = r % s.length;
        const int64_t angle = !positions ? r : one ? positions[0] + i : positions[r];
        const int64_t start = b * s.heads * s.length * s.head + i * s.row_step;
        for (int64_t h = 0; h < s.heads; ++h)
          rotate_head(x + start + h * s.head_step, y + start + h * s.head_step, s.head, cos + angle * half,
                      sin + angle * half, half, interleaved_);
      }
    });
    io.store();
  }

  bool ms_, interleaved_;
  int64_t heads_, dim_;
  float scale_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(rotary_embedding) {
  r.add({.name = "RotaryEmbedding", .since = 23, .make = make_kernel<RotaryEmbedding>});
  r.add({.name = "RotaryEmbedding", .domain = "com.microsoft", .make = make_kernel<RotaryEmbedding>});
}
