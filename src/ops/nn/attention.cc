#include <cmath>

#include "ops/dispatch.h"
#include "ops/float_io.h"
#include "ops/nn/attention_core.h"
#include "ops/registry.h"

namespace epona {
namespace {

enum Input { kQ, kK, kV, kMask, kPastKey, kPastValue, kNonpad };

/// Attention: scaled dot-product attention with grouped heads, a cache inside or outside, masks, a sliding window,
/// soft cap and a copy of the scores.
class Attention final : public FloatKernel<Attention> {
 public:
  explicit Attention(const NodeInfo& info)
      : FloatKernel(info),
        q_heads_(info.attr("q_num_heads", 0)),
        kv_heads_(info.attr("kv_num_heads", 0)),
        left_(info.attr("left_window_size", -1)),
        right_(info.attr("right_window_size", -1)),
        qk_mode_(static_cast<int>(info.attr("qk_matmul_output_mode", 0))),
        softcap_(info.attr("softcap", 0.0f)),
        scale_(info.attr("scale", 0.0f)),
        default_scale_(!info.has_attr("scale")),
        causal_(info.attr("is_causal", 0) != 0),
        pads_mask_(info.opset() >= 24) {
    if (info.has(kPastKey) != info.has(kPastValue))
      info.refuse(Code::invalid_graph, "past_key and past_value should be given together");
    if (info.has(kNonpad) && info.has(kPastKey))
      info.refuse(Code::invalid_graph, "nonpad_kv_seqlen is for a cache outside; it does not go with past_key");
    if (left_ < -1 || right_ < -1) info.refuse(Code::invalid_graph, "window sizes should be -1 or more");
    if (qk_mode_ < 0 || qk_mode_ > 3) info.refuse(Code::invalid_graph, "qk_matmul_output_mode is ", qk_mode_);
  }

  void shapes(ShapeContext& c) const override {
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i); });
    if (c.has(kMask)) check_mask(c, c.in(kMask), s);
    if (c.has(kNonpad) && c.in(kNonpad).size() != s.batch)
      c.refuse("nonpad_kv_seqlen has shape ", c.in(kNonpad), "; expected {", s.batch, "}");
    Shape y = s.flat ? Shape{s.batch, s.q_len, s.q_heads * s.v_head} : Shape{s.batch, s.q_heads, s.q_len, s.v_head};
    Shape key{s.batch, s.kv_heads, s.total, s.head}, value{s.batch, s.kv_heads, s.total, s.v_head};
    Shape qk{s.batch, s.q_heads, s.q_len, s.total};
    const bool double_type = c.in_type(kQ) == DataType::float64;
    c.workspace(own_bytes(s, c.has(kMask) ? c.in(kMask).size() : 0, double_type ? 8 : 4, c.threads()) +
                FloatIo::bytes(c, {y, key, value, c.wants(3) ? qk : Shape{0}}));
    c.out(0, std::move(y));
    c.out(1, std::move(key));
    c.out(2, std::move(value));
    c.out(3, std::move(qk));
  }

 private:
  friend FloatKernel;
  struct Sizes {
    bool flat;  // {batch, rows, heads * size} rather than {batch, heads, rows, size}
    int64_t batch, q_heads, kv_heads, q_len, kv_len, past, total, head, v_head;
  };

  template <class Context, class ShapeOf>
  Sizes sizes(const Context& c, ShapeOf&& shape) const {
    const Shape &q = shape(kQ), &k = shape(kK), &v = shape(kV);
    if ((q.rank() != 3 && q.rank() != 4) || k.rank() != q.rank() || v.rank() != q.rank())
      c.refuse("Q ", q, ", K ", k, " and V ", v, " should all have rank 3 or all rank 4");
    Sizes s;
    s.flat = q.rank() == 3;
    s.batch = q[0];
    if (s.flat) {
      s.q_heads = q_heads_;
      s.kv_heads = kv_heads_;
      if (q_heads_ < 1 || kv_heads_ < 1) c.refuse("inputs of rank 3 need q_num_heads and kv_num_heads");
      if (q[2] % q_heads_ || k[2] % kv_heads_ || v[2] % kv_heads_)
        c.refuse("Q ", q, ", K ", k, ", V ", v, " do not divide into ", q_heads_, " and ", kv_heads_, " heads");
      s.q_len = q[1];
      s.kv_len = k[1];
      s.head = q[2] / q_heads_;
      s.v_head = v[2] / kv_heads_;
    } else {
      s.q_heads = q[1];
      s.kv_heads = k[1];
      s.q_len = q[2];
      s.kv_len = k[2];
      s.head = q[3];
      s.v_head = v[3];
    }
    bool fits =
        k[0] == s.batch && v[0] == s.batch &&
        (s.flat ? k[2] / kv_heads_ == s.head && v[1] == s.kv_len : k[3] == s.head && v[2] == s.kv_len && v[1] == k[1]);
    if (!fits || s.kv_heads < 1 || s.q_heads % s.kv_heads != 0)
      c.refuse("Q ", q, ", K ", k, " and V ", v, " do not fit");
    s.past = 0;
    if (c.has(kPastKey)) {
      const Shape &pk = shape(kPastKey), &pv = shape(kPastValue);
      s.past = pk.rank() == 4 ? pk[2] : -1;
      if (pk != Shape{s.batch, s.kv_heads, s.past, s.head} || pv != Shape{s.batch, s.kv_heads, s.past, s.v_head})
        c.refuse("past_key ", pk, " and past_value ", pv, " do not fit K ", k, " and V ", v);
    }
    s.total = s.past + s.kv_len;
    return s;
  }

  void check_mask(const ShapeContext& c, const Shape& mask, const Sizes& s) const {
    const int64_t full[4] = {s.batch, s.q_heads, s.q_len, s.total};
    const int rank = mask.rank();
    bool fits = rank >= 1 && rank <= 4 && mask.back() <= s.total;
    for (int d = 2; fits && d <= rank; ++d) fits = mask[rank - d] == 1 || mask[rank - d] == full[4 - d];
    if (fits && !pads_mask_) fits = mask.back() == 1 || mask.back() == s.total;  // opset 23: plain broadcasting
    if (!fits)
      c.refuse("attn_mask of shape ", mask, " does not broadcast to ", Shape{full[0], full[1], full[2], full[3]});
  }

  static AttentionSizes core_sizes(const Sizes& s) {
    return {s.batch, s.q_heads, s.kv_heads, s.q_len, s.total, s.head, s.v_head};
  }

  // Own scratch: scores, the concatenated cache where no output holds it, the mask as numbers.
  static size_t own_bytes(const Sizes& s, int64_t mask, size_t width, int threads) {
    auto elements = [&](int64_t n) { return FloatIo::align(static_cast<size_t>(n) * width); };
    return elements(AttentionCore<float>::scratch_size(core_sizes(s), threads)) +
           elements(s.batch * s.kv_heads * s.total * (s.past ? s.head + s.v_head : 0)) + elements(mask) +
           elements(s.total);
  }

  template <class T>
  void compute(const RunContext& c) const {
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i).shape; });
    const int64_t mask_size = c.has(kMask) ? c.in(kMask).size() : 0;
    FloatIo io(c, own_bytes(s, mask_size, sizeof(T), c.pool().threads()));
    char* scratch = c.workspace_as<char>();
    auto take = [&](int64_t n) {
      T* at = reinterpret_cast<T*>(scratch);
      scratch += FloatIo::align(static_cast<size_t>(n) * sizeof(T));
      return at;
    };
    T* scores = take(AttentionCore<float>::scratch_size(core_sizes(s), c.pool().threads()));
    auto heads = [&](auto* data, int64_t n, int64_t rows, int64_t columns) {
      return s.flat ? row_major(data, n, rows, columns) : head_major(data, n, rows, columns);
    };

    const int64_t* nonpad = c.data<int64_t>(kNonpad);
    auto visible = [&](int64_t b, int64_t i) -> KeyRange {
      KeyRange range{0, s.total};
      int64_t at = i + s.past;
      if (nonpad) {
        range.last = nonpad[b];
        at = i + nonpad[b] - s.q_len;
      }
      if (causal_) range.last = std::min(range.last, at + 1);
      if (left_ >= 0) range.first = std::max<int64_t>(range.first, at - left_);
      if (right_ >= 0) range.last = std::min(range.last, at + right_ + 1);
      return range;
    };

    AttentionCore<T> core{.batch = s.batch,
                          .q_heads = s.q_heads,
                          .kv_heads = s.kv_heads,
                          .q_len = s.q_len,
                          .kv_len = s.total,
                          .head_size = s.head,
                          .v_head_size = s.v_head,
                          .q = heads(io.in<T>(kQ), s.q_heads, s.q_len, s.head),
                          .k = heads(io.in<T>(kK), s.kv_heads, s.kv_len, s.head),
                          .v = heads(io.in<T>(kV), s.kv_heads, s.kv_len, s.v_head),
                          .y = heads(io.out<T>(0), s.q_heads, s.q_len, s.v_head),
                          .visible = visible};
    auto joined = [&](Heads<const T> fresh, const T* past, T* present, int64_t columns) {
      if (!present && s.past > 0) present = take(s.batch * s.kv_heads * s.total * columns);
      return join_cache(fresh, s.batch, s.kv_heads, s.kv_len, columns, past, s.past, present, c.pool());
    };
    core.k = joined(core.k, io.in<T>(kPastKey), io.out<T>(1), s.head);
    core.v = joined(core.v, io.in<T>(kPastValue), io.out<T>(2), s.v_head);
    core.scale = default_scale_ ? T(1) / std::sqrt(static_cast<T>(s.head)) : static_cast<T>(scale_);
    core.softcap = static_cast<T>(softcap_);
    if (mask_size > 0) {
      const Shape& shape = c.in(kMask).shape;
      const bool same = c.in(kMask).type == data_type_of<T>;
      core.bias = broadcast(shape, same ? c.data<T>(kMask) : numbers(c, take(mask_size)));
      const bool stretch = !pads_mask_ && shape.back() == 1;
      core.bias_step = stretch ? 0 : 1;
      core.bias_len = stretch ? s.total : shape.back();
    } else if (c.has(kMask)) {
      core.bias = {scores, 0, 0, 0};
      core.bias_len = 0;
    }
    core.qk = io.out<T>(3);
    core.qk_mode = qk_mode_;
    core.run(scores, c.pool());
    io.store();
  }

  /// The mask as numbers to add: false is -inf.
  template <class T>
  static T* numbers(const RunContext& c, T* to) {
    const Tensor& mask = c.in(kMask);
    const int64_t n = mask.size();
    if (mask.type == DataType::boolean) {
      const bool* from = mask.as<bool>();
      for (int64_t i = 0; i < n; ++i) to[i] = from[i] ? T(0) : -std::numeric_limits<T>::infinity();
    } else {
      bool done = dispatch(mask.type, NumericTypes{}, [&]<class From>() {
        const From* from = mask.as<From>();
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
      });
      if (!done) c.refuse("attn_mask of type ", mask.type);
    }
    return to;
  }

  template <class T>
  static Heads<const T> broadcast(const Shape& mask, const T* data) {
    Heads<const T> view{data, 0, 0, 0};
    int64_t step = mask.back();
    for (int d = 2; d <= mask.rank(); ++d) {
      int64_t dim = mask[mask.rank() - d];
      (d == 2 ? view.row : d == 3 ? view.head : view.batch) = dim == 1 ? 0 : step;
      step *= dim;
    }
    return view;
  }

  int64_t q_heads_, kv_heads_, left_, right_;
  int qk_mode_;
  float softcap_, scale_;
  bool default_scale_, causal_, pads_mask_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(attention) { r.add({.name = "Attention", .since = 23, .make = make_kernel<Attention>}); }
