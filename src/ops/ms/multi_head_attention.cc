#include <cmath>

#include "ops/ms/ms_attention_util.h"
#include "ops/registry.h"

namespace epona {
namespace {

enum Input { kQuery, kKey, kValue, kBias, kMask, kAttentionBias, kPastKey, kPastValue, kPastLength, kIndirection };

/// MultiHeadAttention of com.microsoft. Queries, keys and values are {batch, rows, heads * size}; keys and values may
/// also be a cache {batch, heads, rows, size}, packed in pairs {batch, rows, heads, 2, size} or all three packed in the
/// query.
class MultiHeadAttention final : public Kernel {
 public:
  explicit MultiHeadAttention(const NodeInfo& info)
      : heads_(info.attr("num_heads", 0)),
        scale_(info.attr("scale", 0.0f)),
        filter_(info.attr("mask_filter_value", -10000.0f)),
        causal_(info.attr("unidirectional", 0) != 0) {
    if (!is_float(info.in_type(0)) || info.in_type(0) == DataType::float64)
      info.refuse(Code::not_implemented, "type ", info.in_type(0));
    if (heads_ < 1) info.refuse(Code::invalid_graph, "num_heads is ", heads_);
    if (info.has(kPastLength) || info.has(kIndirection))
      info.refuse(Code::not_implemented, "a shared past and present buffer (past_sequence_length, cache_indirection)");
    if (info.has(kPastKey) != info.has(kPastValue))
      info.refuse(Code::invalid_graph, "past_key and past_value should be given together");
  }

  void shapes(ShapeContext& c) const override {
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i); });
    const Shape y{s.batch, s.q_len, heads_ * s.v_head}, key{s.batch, heads_, s.total, s.head};
    const Shape value{s.batch, heads_, s.total, s.v_head}, qk{s.batch, heads_, s.q_len, s.total};
    if (c.has(kBias) && c.in(kBias).size() != heads_ * (2 * s.head + s.v_head))
      c.refuse("bias has shape ", c.in(kBias), "; expected {", heads_ * (2 * s.head + s.v_head), "}");
    if (c.has(kAttentionBias)) check_attention_bias(c, kAttentionBias, s.batch, heads_, s.q_len, s.total);
    size_t own = Pieces<float>::bytes(AttentionCore<float>::scratch_size(core_sizes(s), c.threads()));
    if (c.has(kMask))
      own += Pieces<float>::bytes(s.batch * KeyMask(c, kMask, s.batch, s.q_len, s.total).rows * s.total);
    if (c.has(kBias))
      own += Pieces<float>::bytes(s.batch * heads_ * s.q_len * s.head) +
             Pieces<float>::bytes(s.batch * heads_ * s.kv_len * s.head) +
             Pieces<float>::bytes(s.batch * heads_ * s.kv_len * s.v_head);
    if (s.past > 0) own += Pieces<float>::bytes(key.size()) + Pieces<float>::bytes(value.size());
    c.workspace(own + 64 + FloatIo::bytes(c, {y, key, value, c.wants(3) ? qk : Shape{0}}));
    c.out(0, y);
    c.out(1, key);
    c.out(2, value);
    c.out(3, qk);
  }

  void run(const RunContext& c) const override {
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i).shape; });
    Pieces<float> pieces(c.workspace());
    float* scores = pieces.take(AttentionCore<float>::scratch_size(core_sizes(s), c.pool().threads()));
    Heads<const float> mask;
    if (c.has(kMask)) {
      const Tensor& m = c.in(kMask);
      float* to = pieces.take(s.batch * (m.shape.rank() == 3 ? s.q_len : 1) * s.total);
      mask = KeyMask::fill(m, s.batch, s.total, filter_, to);
    }
    auto [q, k, v] = scratch_views(c, s, pieces);
    auto past_piece = [&](bool needed, int64_t columns) {
      return needed && s.past > 0 ? pieces.take(s.batch * heads_ * s.total * columns) : nullptr;
    };
    float* joined_k = past_piece(true, s.head);
    float* joined_v = past_piece(true, s.v_head);
    // All own pieces are handed out: the rest belongs to conversions.
    FloatIo io(c, static_cast<size_t>(reinterpret_cast<char*>(pieces.take(0)) - c.workspace_as<char>()));
    const float* bias = io.in<float>(kBias);
    const float* query = io.in<float>(kQuery);
    Heads<const float> qv, kv, vv;
    if (s.packed_qkv) {
      const int64_t row = heads_ * 3 * s.head;
      qv = {query, s.q_len * row, 3 * s.head, row};
      kv = {query + s.head, s.q_len * row, 3 * s.head, row};
      vv = {query + 2 * s.head, s.q_len * row, 3 * s.head, row};
    } else {
      const float *key = io.in<float>(kKey), *value = io.in<float>(kValue);
      qv = row_major(query, heads_, s.q_len, s.head);
      if (s.packed_kv) {
        const int64_t row = heads_ * 2 * s.head;
        kv = {key, s.kv_len * row, 2 * s.head, row};
        vv = {key + s.head, s.kv_len * row, 2 * s.head, row};
      } else if (s.cache) {
        kv = head_major(key, heads_, s.kv_len, s.head);
        vv = head_major(value, heads_, s.kv_len, s.v_head);
      } else {
        kv = row_major(key, heads_, s.kv_len, s.head);
        vv = row_major(value, heads_, s.kv_len, s.v_head);
      }
    }
    if (bias) {
      qv = add_head_bias(qv, bias, s.batch, heads_, s.q_len, s.head, q, c.pool());
      // A cache has had its bias already.
      if (!s.cache) {
        kv = add_head_bias(kv, bias + heads_ * s.head, s.batch, heads_, s.kv_len, s.head, k, c.pool());
        vv = add_head_bias(vv, bias + 2 * heads_ * s.head, s.batch, heads_, s.kv_len, s.v_head, v, c.pool());
      }
    }
    auto visible = [&](int64_t, int64_t i) { return KeyRange{0, causal_ ? s.past + i + 1 : s.total}; };
    AttentionCore<float> core{.batch = s.batch,
                              .q_heads = heads_,
                              .kv_heads = heads_,
                              .q_len = s.q_len,
                              .kv_len = s.total,
                              .head_size = s.head,
                              .v_head_size = s.v_head,
                              .q = qv,
                              .k = kv,
                              .v = vv,
                              .y = row_major(io.out<float>(0), heads_, s.q_len, s.v_head),
                              .visible = visible};
    float *present_k = io.out<float>(1), *present_v = io.out<float>(2);
    core.k = join_cache(kv, s.batch, heads_, s.kv_len, s.head, io.in<float>(kPastKey), s.past,
                        present_k ? present_k : joined_k, c.pool());
    core.v = join_cache(vv, s.batch, heads_, s.kv_len, s.v_head, io.in<float>(kPastValue), s.past,
                        present_v ? present_v : joined_v, c.pool());
    core.scale = scale_ != 0 ? scale_ : 1 / std::sqrt(static_cast<float>(s.head));
    core.bias = attention_bias_view(c, kAttentionBias, io.in<float>(kAttentionBias));
    core.mask = mask;
    core.qk = io.out<float>(3);
    core.qk_mode = 2;
    core.run(scores, c.pool());
    io.store();
  }

 private:
  struct Sizes {
    int64_t batch, q_len, kv_len, past, total, head, v_head;
    bool packed_qkv, packed_kv, cache;
  };
  struct Views {
    float *q, *k, *v;
  };

  Views scratch_views(const RunContext& c, const Sizes& s, Pieces<float>& pieces) const {
    if (!c.has(kBias)) return {nullptr, nullptr, nullptr};
    float* q = pieces.take(s.batch * heads_ * s.q_len * s.head);
    float* k = pieces.take(s.batch * heads_ * s.kv_len * s.head);
    float* v = pieces.take(s.batch * heads_ * s.kv_len * s.v_head);
    return {q, k, v};
  }

  AttentionSizes core_sizes(const Sizes& s) const {
    return {s.batch, heads_, heads_, s.q_len, s.total, s.head, s.v_head};
  }

  template <class Context, class ShapeOf>
  Sizes sizes(const Context& c, ShapeOf&& shape) const {
    const Shape& q = shape(kQuery);
    Sizes s{};
    auto bad = [&]() {
      c.refuse("query ", q, c.has(kKey) ? cat(", key ", shape(kKey)) : std::string(),
               c.has(kValue) ? cat(", value ", shape(kValue)) : std::string(), " do not fit ", heads_, " heads");
    };
    s.packed_qkv = q.rank() == 5;
    if (s.packed_qkv) {
      if (q[2] != heads_ || q[3] != 3 || c.has(kKey) || c.has(kValue)) bad();
      s.kv_len = q[1];
      s.head = s.v_head = q[4];
    } else {
      if (q.rank() != 3 || q[2] % heads_ != 0 || !c.has(kKey)) bad();
      s.head = q[2] / heads_;
      const Shape& k = shape(kKey);
      s.packed_kv = k.rank() == 5;
      s.cache = k.rank() == 4;
      if (s.packed_kv) {
        if (k != Shape{q[0], k[1], heads_, 2, s.head} || c.has(kValue)) bad();
        s.kv_len = k[1];
        s.v_head = s.head;
      } else if (s.cache) {
        if (!c.has(kValue) || k != Shape{q[0], heads_, k[2], s.head} || shape(kValue).rank() != 4) bad();
        s.kv_len = k[2];
        s.v_head = shape(kValue)[3];
        if (shape(kValue) != Shape{q[0], heads_, s.kv_len, s.v_head} || c.has(kPastKey)) bad();
      } else {
        if (!c.has(kValue) || k.rank() != 3 || k != Shape{q[0], k[1], q[2]} || shape(kValue).rank() != 3) bad();
        const Shape& v = shape(kValue);
        s.kv_len = k[1];
        if (v[0] != q[0] || v[1] != s.kv_len || v[2] % heads_ != 0) bad();
        s.v_head = v[2] / heads_;
      }
    }
    s.batch = q[0];
    s.q_len = q[1];
    if (c.has(kPastKey)) {
      const Shape &pk = shape(kPastKey), &pv = shape(kPastValue);
      s.past = pk.rank() == 4 ? pk[2] : -1;
      if (pk != Shape{s.batch, heads_, s.past, s.head} || pv != Shape{s.batch, heads_, s.past, s.v_head})
        c.refuse("past_key ", pk, " or past_value ", pv, " does not fit");
    }
    s.total = s.past + s.kv_len;
    return s;
  }

  int64_t heads_;
  float scale_, filter_;
  bool causal_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(multi_head_attention) {
  r.add({.name = "MultiHeadAttention", .domain = "com.microsoft", .make = make_kernel<MultiHeadAttention>});
}
