#include <cmath>

#include "ops/ms/ms_attention_util.h"
#include "ops/product.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Attention and QAttention of com.microsoft: queries, keys and values are one projection of the input, {input, q + k +
/// v hidden}; past and present are {2, batch, heads, rows, size}. QAttention has 8-bit input and constant 8-bit
/// weights, which are brought back to float.
class SelfAttention final : public Kernel {
 public:
  explicit SelfAttention(const NodeInfo& info)
      : quantized_(info.node().op == "QAttention"),
        heads_(info.attr("num_heads", 0)),
        scale_(info.attr("scale", 0.0f)),
        filter_(info.attr("mask_filter_value", -10000.0f)),
        causal_(info.attr("unidirectional", 0) != 0),
        hidden_(info.ints("qkv_hidden_sizes")) {
    const DataType type = info.in_type(quantized_ ? 3 : 0);
    if (!is_float(type) || type == DataType::float64) info.refuse(Code::not_implemented, "type ", type);
    if (heads_ < 1) info.refuse(Code::invalid_graph, "num_heads is ", heads_);
    if (info.attr("do_rotary", 0) || info.attr("past_present_share_buffer", 0))
      info.refuse(Code::not_implemented, "do_rotary and past_present_share_buffer");
    if (!hidden_.empty() && (hidden_.size() != 3 || hidden_[0] != hidden_[1]))
      info.refuse(Code::invalid_graph, "qkv_hidden_sizes should be three numbers, the first two alike");
    for (int64_t h : hidden_)
      if (h < 1 || h % heads_ != 0) info.refuse(Code::invalid_graph, "qkv_hidden_sizes holds ", h);
    pack_weights(info);
  }

  void shapes(ShapeContext& c) const override {
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i); });
    const Shape y{s.batch, s.length, heads_ * s.v_head}, present{2, s.batch, heads_, s.total, s.head};
    if (c.has(2) && c.in(2).size() != s.columns) c.refuse("bias has shape ", c.in(2), "; expected {", s.columns, "}");
    if (!quantized_ && c.has(5)) check_attention_bias(c, 5, s.batch, heads_, s.length, s.total);
    if (quantized_)
      for (int i : {3, 6})
        if (c.has(i) && c.in(i).size() != 1) c.refuse("input ", i, " should be a scalar");
    size_t own = Pieces<float>::bytes(AttentionCore<float>::scratch_size(core_sizes(s), c.threads())) +
                 Pieces<float>::bytes(s.batch * s.length * s.columns) + 64;
    if (c.has(mask_input()))
      own += Pieces<float>::bytes(s.batch * KeyMask(c, mask_input(), s.batch, s.length, s.total).rows * s.total);
    if (s.past > 0) own += Pieces<float>::bytes(present.size());
    if (!packed_) own += Pieces<float>::bytes(static_cast<int64_t>(packed_b_floats(s.input, s.columns)));
    if (quantized_) own += Pieces<float>::bytes(c.in(0).size());
    c.workspace(own + FloatIo::bytes(c, {y, present}));
    c.out(0, y);
    c.out(1, present);
  }

  void run(const RunContext& c) const override {
    const Sizes s = sizes(c, [&](int i) -> const Shape& { return c.in(i).shape; });
    Pieces<float> pieces(c.workspace());
    float* scores = pieces.take(AttentionCore<float>::scratch_size(core_sizes(s), c.pool().threads()));
    float* qkv = pieces.take(s.batch * s.length * s.columns);
    Heads<const float> mask;
    if (c.has(mask_input())) {
      const Tensor& m = c.in(mask_input());
      float* to = pieces.take(s.batch * (m.shape.rank() == 3 ? s.length : 1) * s.total);
      mask = KeyMask::fill(m, s.batch, s.total, filter_, to);
    }
    float* joined = s.past > 0 ? pieces.take(2 * s.batch * heads_ * s.total * s.head) : nullptr;
    float* packed = packed_ ? nullptr : pieces.take(static_cast<int64_t>(packed_b_floats(s.input, s.columns)));
    float* dense = quantized_ ? pieces.take(c.in(0).size()) : nullptr;
    FloatIo io(c, static_cast<size_t>(reinterpret_cast<char*>(pieces.take(0)) - c.workspace_as<char>()));

    const float* x = dense;
    if (quantized_)
      dequantize(c, dense);
    else
      x = io.in<float>(0);
    if (packed) pack_b(s.input, s.columns, io.in<float>(1), s.columns, false, packed, &c.pool());
    Product<float>{s.input, s.columns, packed ? packed : packed_.as<float>()}.run(x, s.batch * s.length, qkv,
                                                                                  io.in<float>(2), c.pool());
    const int64_t q_hidden = heads_ * s.head;
    auto view = [&](int64_t offset, int64_t size) {
      return Heads<const float>{qkv + offset, s.length * s.columns, size, s.columns};
    };
    auto visible = [&](int64_t, int64_t i) { return KeyRange{0, causal_ ? s.past + i + 1 : s.total}; };
    AttentionCore<float> core{.batch = s.batch,
                              .q_heads = heads_,
                              .kv_heads = heads_,
                              .q_len = s.length,
                              .kv_len = s.total,
                              .head_size = s.head,
                              .v_head_size = s.v_head,
                              .q = view(0, s.head),
                              .k = view(q_hidden, s.head),
                              .v = view(2 * q_hidden, s.v_head),
                              .y = row_major(io.out<float>(0), heads_, s.length, s.v_head),
                              .visible = visible};
    float* present = io.out<float>(1);
    if (!present) present = joined;
    const float* past = s.past > 0 ? io.in<float>(past_input()) : nullptr;
    const int64_t half = s.batch * heads_ * s.past * s.head, present_half = s.batch * heads_ * s.total * s.head;
    core.k = join_cache(core.k, s.batch, heads_, s.length, s.head, past, s.past, present, c.pool());
    core.v = join_cache(core.v, s.batch, heads_, s.length, s.v_head, past ? past + half : nullptr, s.past,
                        present ? present + present_half : nullptr, c.pool());
    core.scale = scale_ != 0 ? scale_ : 1 / std::sqrt(static_cast<float>(s.head));
    if (!quantized_) core.bias = attention_bias_view(c, 5, io.in<float>(5));
    core.mask = mask;
    core.run(scores, c.pool());
    io.store();
  }

 private:
  struct Sizes {
    int64_t batch, length, input, columns, past, total, head, v_head;
  };
  int mask_input() const { return quantized_ ? 5 : 3; }
  int past_input() const { return quantized_ ? 8 : 4; }

  AttentionSizes core_sizes(const Sizes& s) const {
    return {s.batch, heads_, heads_, s.length, s.total, s.head, s.v_head};
  }

  template <class Context, class ShapeOf>
  Sizes sizes(const Context& c, ShapeOf&& shape) const {
    const Shape &x = shape(0), &w = shape(1);
    if (x.rank() != 3 || w.rank() != 2 || w[0] != x[2]) c.refuse("input ", x, " and weights ", w, " do not fit");
    Sizes s{};
    s.batch = x[0], s.length = x[1], s.input = x[2], s.columns = w[1];
    const int64_t q = hidden_.empty() ? w[1] / 3 : hidden_[0], v = hidden_.empty() ? w[1] / 3 : hidden_[2];
    if (2 * q + v != w[1] || q % heads_ != 0 || v % heads_ != 0)
      c.refuse("weights ", w, " do not divide into queries, keys and values of ", heads_, " heads");
    s.head = q / heads_, s.v_head = v / heads_;
    if (c.has(past_input())) {
      const Shape& past = shape(past_input());
      s.past = past.rank() == 5 ? past[3] : -1;
      if (past != Shape{2, s.batch, heads_, s.past, s.head} || s.v_head != s.head)
        c.refuse("past has shape ", past, "; expected {2,", s.batch, ",", heads_, ",past length,", s.head, "}");
    } else if (c.wants(1) && s.v_head != s.head) {
      c.refuse("present needs keys and values of one size");
    }
    s.total = s.past + s.length;
    return s;
  }

  void pack_weights(const NodeInfo& info) {
    const Tensor* w = info.constant(1);
    if (quantized_ && !w) info.refuse(Code::not_implemented, "weights that are not constant");
    if (!w || w->shape.rank() != 2) return;
    const int64_t rows = w->shape[0], columns = w->shape[1];
    Tensor dense = Tensor::allocate(DataType::float32, w->shape);
    if (quantized_) {
      const Tensor *scale = info.constant(4), *zero = info.constant(7);
      if (!scale || (info.has(7) && !zero)) info.refuse(Code::not_implemented, "weight scales that are not constant");
      if ((scale->size() != 1 && scale->size() != columns) || (zero && zero->size() != 1 && zero->size() != columns))
        info.refuse(Code::invalid_graph, "weight scale ", scale->shape, " does not fit ", w->shape);
      Tensor wide = Tensor::allocate(DataType::float32, scale->shape);
      ThreadPool alone({.threads = 1});
      convert_floats(scale->type, scale->data, DataType::float32, wide.data, scale->size(), alone);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          const int z = zero ? number(*zero, zero->size() == 1 ? 0 : j) : 0;
          dense.as<float>()[i * columns + j] =
              static_cast<float>(number(*w, i * columns + j) - z) * wide.as<float>()[scale->size() == 1 ? 0 : j];
        }
    } else {
      ThreadPool alone({.threads = 1});
      convert_floats(w->type, w->data, DataType::float32, dense.data, w->size(), alone);
    }
    packed_ = Tensor::allocate(DataType::float32, Shape{static_cast<int64_t>(packed_b_floats(rows, columns))});
    pack_b(rows, columns, dense.as<float>(), columns, false, packed_.as<float>());
  }

  static int number(const Tensor& t, int64_t i) {
    return t.type == DataType::int8 ? t.as<int8_t>()[i] : t.as<uint8_t>()[i];
  }

  void dequantize(const RunContext& c, float* to) const {
    const Tensor& x = c.in(0);
    float scale;
    convert_floats(c.in(3).type, c.in(3).data, DataType::float32, &scale, 1, c.pool());
    const int zero = c.has(6) ? number(c.in(6), 0) : 0;
    for (int64_t i = 0, n = x.size(); i < n; ++i) to[i] = static_cast<float>(number(x, i) - zero) * scale;
  }

  bool quantized_;
  int64_t heads_;
  float scale_, filter_;
  bool causal_;
  std::vector<int64_t> hidden_;
  Tensor packed_;  // the weights for float products, when they are constant
};

}  // namespace
}  // namespace epona

EPONA_OPS(ms_attention) {
  r.add({.name = "Attention", .domain = "com.microsoft", .make = make_kernel<SelfAttention>});
  r.add({.name = "QAttention", .domain = "com.microsoft", .make = make_kernel<SelfAttention>});
}
