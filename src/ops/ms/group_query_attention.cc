#include <algorithm>
#include <cmath>

#include "ops/ms/ms_attention_util.h"
#include "ops/nn/rotary.h"
#include "ops/registry.h"

namespace epona {
namespace {

enum Input {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kSeqlens,
  kTotal,
  kCos,
  kSin,
  kPositionIds,
  kAttentionBias,
  kSink,
  kScaleK,
  kScaleV,
  kNormQ,
  kNormK,
  kQuerySeqlens
};

/// GroupQueryAttention: causal attention over a cache that grows or is a buffer longer than what is in it. Entry b of
/// the batch has seqlens_k[b] + 1 tokens after the step; its queries are the last of them.
class GroupQueryAttention final : public Kernel {
 public:
  explicit GroupQueryAttention(const NodeInfo& info)
      : heads_(info.attr("num_heads", 0)),
        kv_heads_(info.attr("kv_num_heads", 0)),
        window_(info.attr("local_window_size", -1)),
        qk_output_(info.attr("qk_output", 0)),
        scale_(info.attr("scale", 0.0f)),
        softcap_(info.attr("softcap", 0.0f)),
        rotary_(info.attr("do_rotary", 0) != 0),
        interleaved_(info.attr("rotary_interleaved", 0) != 0),
        smooth_(info.attr("smooth_softmax", 0) == 1),
        causal_(info.attr("causal", 1) != 0) {
    if (!is_float(info.in_type(0)) || info.in_type(0) == DataType::float64)
      info.refuse(Code::not_implemented, "type ", info.in_type(0));
    if (heads_ < 1 || kv_heads_ < 1 || heads_ % kv_heads_ != 0)
      info.refuse(Code::invalid_graph, "num_heads ", heads_, " is not a multiple of kv_num_heads ", kv_heads_);
    for (const char* key : {"k_quant_type", "v_quant_type"})
      if (info.attr(key, "NONE") != "NONE") info.refuse(Code::not_implemented, "a quantised cache (", key, ")");
    if (info.attr("sliding_window_cache", 0)) info.refuse(Code::not_implemented, "sliding_window_cache");
    if (info.has(kNormQ) || info.has(kNormK)) info.refuse(Code::not_implemented, "q_norm_weight and k_norm_weight");
    if (info.has(kPastKey) != info.has(kPastValue))
      info.refuse(Code::invalid_graph, "past_key and past_value should be given together");
    if (info.has(kKey) != info.has(kValue)) info.refuse(Code::invalid_graph, "key and value should be given together");
    if (rotary_ && (!info.has(kCos) || !info.has(kSin)))
      info.refuse(Code::invalid_graph, "do_rotary needs cos_cache and sin_cache");
    if (qk_output_ < 0 || qk_output_ > 2) info.refuse(Code::invalid_graph, "qk_output is ", qk_output_);
  }

  void shapes(ShapeContext& c) const override {
    const std::vector<int64_t> total = c.ints(kTotal);
    if (total.size() != 1 || total[0] < 0) c.refuse("total_sequence_length should be one number");
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i); }, total[0]);
    if (c.in(kSeqlens).size() != s.batch)
      c.refuse("seqlens_k has shape ", c.in(kSeqlens), "; expected {", s.batch, "}");
    if (c.has(kQuerySeqlens) && c.in(kQuerySeqlens).size() != s.batch)
      c.refuse("query_seqlens has shape ", c.in(kQuerySeqlens), "; expected {", s.batch, "}");
    if (rotary_) {
      const Shape &cos = c.in(kCos), &sin = c.in(kSin);
      if (cos.rank() != 2 || sin != cos || 2 * cos[1] > s.head)
        c.refuse("cos and sin caches have shapes ", cos, " and ", sin);
      if (c.has(kPositionIds) && c.in(kPositionIds) != Shape{s.batch, s.q_len})
        c.refuse("position_ids has shape ", c.in(kPositionIds), "; expected ", Shape{s.batch, s.q_len});
    }
    if (c.has(kAttentionBias)) {
      const Shape& bias = c.in(kAttentionBias);
      if (bias.rank() != 4 || (bias[0] != 1 && bias[0] != s.batch) || (bias[1] != 1 && bias[1] != heads_) ||
          bias[2] != s.q_len || bias[3] < s.total)
        c.refuse("attention_bias has shape ", bias, "; expected ", Shape{s.batch, heads_, s.q_len, s.total});
    }
    if (c.has(kSink) && c.in(kSink).size() != heads_) c.refuse("head_sink has shape ", c.in(kSink));
    const Shape y{s.batch, s.q_len, heads_ * s.head}, present{s.batch, kv_heads_, s.capacity, s.head};
    const Shape qk{s.batch, heads_, s.q_len, s.total};
    c.workspace(64 + Pieces<float>::bytes(AttentionCore<float>::scratch_size(core_sizes(s, c.wants(3)), c.threads())) +
                Pieces<float>::bytes(y.size()) + 2 * Pieces<float>::bytes(present.size()) +
                FloatIo::bytes(c, {y, present, present, c.wants(3) ? qk : Shape{0}}));
    c.out(0, y);
    c.out(1, present);
    c.out(2, present);
    c.out(3, qk);
  }

  void run(const RunContext& c) const override {
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i).shape; }, *c.data<int32_t>(kTotal));
    const int64_t cache = s.batch * kv_heads_ * s.capacity * s.head;
    Pieces<float> pieces(c.workspace());
    float* scores = pieces.take(AttentionCore<float>::scratch_size(core_sizes(s, c.wants(3)), c.pool().threads()));
    float* turned = pieces.take(s.batch * s.q_len * heads_ * s.head);
    float *own_k = pieces.take(cache), *own_v = pieces.take(cache);
    FloatIo io(c, static_cast<size_t>(reinterpret_cast<char*>(pieces.take(0)) - c.workspace_as<char>()));
    const float* query = io.in<float>(kQuery);
    float *present_k = io.out<float>(1), *present_v = io.out<float>(2);
    if (!present_k) present_k = own_k;
    if (!present_v) present_v = own_v;

    Heads<const float> q, k, v;
    if (c.has(kKey)) {
      q = row_major(query, heads_, s.q_len, s.head);
      k = row_major(io.in<float>(kKey), kv_heads_, s.q_len, s.head);
      v = row_major(io.in<float>(kValue), kv_heads_, s.q_len, s.head);
    } else {
      const int64_t row = (heads_ + 2 * kv_heads_) * s.head;
      q = {query, s.q_len * row, s.head, row};
      k = {query + heads_ * s.head, s.q_len * row, s.head, row};
      v = {query + (heads_ + kv_heads_) * s.head, s.q_len * row, s.head, row};
    }
    const int32_t *seqlens = c.data<int32_t>(kSeqlens), *chunks = c.data<int32_t>(kQuerySeqlens);
    auto span = [&](int64_t b) { return step_of(s, b, seqlens, chunks); };
    for (int64_t b = 0; b < s.batch; ++b) check_step(c, s, b, span(b));

    // The cache: what was there, the new rows, zeros. Queries and new keys are turned on the way.
    const float *past_k = io.in<float>(kPastKey), *past_v = io.in<float>(kPastValue);
    const float *cos = rotary_ ? io.in<float>(kCos) : nullptr, *sin = rotary_ ? io.in<float>(kSin) : nullptr;
    const int64_t half = rotary_ ? c.in(kCos).shape[1] : 0;
    const int64_t* positions = c.data<int64_t>(kPositionIds);
    auto turn = [&](int64_t b, int64_t i, const float* from, float* to) {
      const int64_t at = positions ? positions[b * s.q_len + i] : span(b).past + i;
      if (at < 0 || at >= c.in(kCos).shape[0])
        c.refuse("position ", at, " is out of range for a cos_cache of shape ", c.in(kCos).shape);
      rotate_head(from, to, s.head, cos + at * half, sin + at * half, half, interleaved_);
    };
    c.pool().parallel_for(
        s.batch * kv_heads_, 0.4 * static_cast<double>(s.capacity * s.head), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t b = i / kv_heads_, h = i % kv_heads_;
            const Step step = span(b);
            float *to_k = present_k + i * s.capacity * s.head, *to_v = present_v + i * s.capacity * s.head;
            if (past_k) {
              std::copy_n(past_k + i * s.past_capacity * s.head, step.past * s.head, to_k);
              std::copy_n(past_v + i * s.past_capacity * s.head, step.past * s.head, to_v);
            }
            for (int64_t r = 0; r < step.rows; ++r) {
              float* row_k = to_k + (step.past + r) * s.head;
              if (rotary_)
                turn(b, r, k.at(b, h, r), row_k);
              else
                std::copy_n(k.at(b, h, r), s.head, row_k);
              std::copy_n(v.at(b, h, r), s.head, to_v + (step.past + r) * s.head);
            }
            const int64_t used = (step.past + step.rows) * s.head;
            std::fill(to_k + used, to_k + s.capacity * s.head, 0.0f);
            std::fill(to_v + used, to_v + s.capacity * s.head, 0.0f);
          }
        });
    if (rotary_) {
      Heads<float> to = row_major(turned, heads_, s.q_len, s.head);
      c.pool().parallel_for(s.batch * s.q_len, 1.0 * static_cast<double>(heads_ * s.head),
                            [&](int64_t begin, int64_t end) {
                              for (int64_t i = begin; i < end; ++i)
                                for (int64_t h = 0; h < heads_; ++h) {
                                  const int64_t b = i / s.q_len, r = i % s.q_len;
                                  if (r < span(b).rows)
                                    turn(b, r, q.at(b, h, r), to.at(b, h, r));
                                  else
                                    std::fill_n(to.at(b, h, r), s.head, 0.0f);
                                }
                            });
      q = row_major<const float>(turned, heads_, s.q_len, s.head);
    }

    auto visible = [&](int64_t b, int64_t i) {
      const Step step = span(b);
      const int64_t at = step.past + i;
      KeyRange range{0, causal_ ? std::min(at + 1, step.past + step.rows) : step.past + step.rows};
      if (window_ > 0) range.first = std::max<int64_t>(0, at + 1 - window_);
      return range;
    };
    AttentionCore<float> core{.batch = s.batch,
                              .q_heads = heads_,
                              .kv_heads = kv_heads_,
                              .q_len = s.q_len,
                              .kv_len = c.wants(3) ? s.total : s.capacity,
                              .head_size = s.head,
                              .v_head_size = s.head,
                              .q = q,
                              .k = head_major<const float>(present_k, kv_heads_, s.capacity, s.head),
                              .v = head_major<const float>(present_v, kv_heads_, s.capacity, s.head),
                              .y = row_major(io.out<float>(0), heads_, s.q_len, s.head),
                              .visible = visible};
    core.scale = scale_ != 0 ? scale_ : 1 / std::sqrt(static_cast<float>(s.head));
    core.softcap = softcap_;
    core.bias = attention_bias_view(c, kAttentionBias, io.in<float>(kAttentionBias));
    core.sink = io.in<float>(kSink);
    core.smooth = smooth_;
    core.qk = io.out<float>(3);
    core.qk_mode = qk_output_ == 2 ? 3 : 2;
    core.run(scores, c.pool());
    // Masked scores show as 0.
    if (core.qk && core.qk_mode == 2)
      std::replace(core.qk, core.qk + s.batch * heads_ * s.q_len * s.total, -INFINITY, 0.0f);
    io.store();
  }

 private:
  struct Sizes {
    int64_t batch, q_len, head, past_capacity, total, capacity;
  };
  /// Rows of the cache that were there before, and new rows, of a batch entry.
  struct Step {
    int64_t past, rows;
  };

  // qk_output covers total_sequence_length keys, the cache may hold more rows.
  AttentionSizes core_sizes(const Sizes& s, bool wants_qk) const {
    return {s.batch, heads_, kv_heads_, s.q_len, wants_qk ? s.total : s.capacity, s.head, s.head};
  }

  template <class Context, class ShapeOf>
  Sizes sizes(const Context& c, ShapeOf&& shape, int64_t total) const {
    const Shape& q = shape(kQuery);
    const int64_t q_columns = c.has(kKey) ? heads_ : heads_ + 2 * kv_heads_;
    if (q.rank() != 3 || q[2] % q_columns != 0) c.refuse("query has shape ", q, " for ", heads_, " heads");
    Sizes s{q[0], q[1], q[2] / q_columns, 0, total, 0};
    if (c.has(kKey)) {
      const Shape expected{s.batch, s.q_len, kv_heads_ * s.head};
      if (shape(kKey) != expected || shape(kValue) != expected)
        c.refuse("key ", shape(kKey), " and value ", shape(kValue), " should have shape ", expected);
    }
    if (c.has(kPastKey)) {
      const Shape &pk = shape(kPastKey), &pv = shape(kPastValue);
      s.past_capacity = pk.rank() == 4 ? pk[2] : -1;
      if (pk != Shape{s.batch, kv_heads_, s.past_capacity, s.head} || pv != pk)
        c.refuse("past_key ", pk, " and past_value ", pv, " should have shape {", s.batch, ",", kv_heads_, ",length,",
                 s.head, "}");
    }
    s.capacity = std::max(s.past_capacity, total);
    return s;
  }

  Step step_of(const Sizes& s, int64_t b, const int32_t* seqlens, const int32_t* chunks) const {
    const int64_t total = int64_t{seqlens[b]} + 1;
    if (chunks) return {total - chunks[b], chunks[b]};
    // A first prompt may be padded on the right: all its rows are stored.
    return {s.q_len == s.total ? 0 : total - s.q_len, s.q_len};
  }
  void check_step(const RunContext& c, const Sizes& s, int64_t b, const Step& step) const {
    if (step.past < 0 || step.rows < 0 || step.rows > s.q_len || step.past > s.past_capacity ||
        step.past + step.rows > s.capacity)
      c.refuse("seqlens_k of entry ", b, " asks for ", step.past, " cached and ", step.rows,
               " new rows; the past holds ", s.past_capacity, ", total_sequence_length is ", s.total);
  }

  int64_t heads_, kv_heads_, window_, qk_output_;
  float scale_, softcap_;
  bool rotary_, interleaved_, smooth_, causal_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(group_query_attention) {
  r.add({.name = "GroupQueryAttention",
         .domain = "com.microsoft",
         .make = make_kernel<GroupQueryAttention>,
         .shape_inputs = 1 << kTotal});
}
