#include "model/ms_schemas.h"

namespace epona {

using ms::Context;
using ms::dim;

namespace {

constexpr char kHalfAndFloat[] = "float,float16,bfloat16";

int64_t known(const ms::DimProto& d) { return d.has_dim_value() ? d.dim_value() : -1; }

// Hidden size of the values: qkv_hidden_sizes[2], or a third of the projection's columns.
ms::DimProto v_hidden(Context& c, const ms::ShapeProto* weights) {
  auto* sizes = c.getAttribute("qkv_hidden_sizes");
  if (sizes && sizes->ints_size() == 3) return dim(sizes->ints(2));
  return weights && known(weights->dim(1)) >= 0 ? dim(known(weights->dim(1)) / 3) : ms::DimProto();
}

// Attention and QAttention: past and present are {2, batch, heads, length, head size}.
void infer_self_attention(Context& c, size_t type_input, size_t past_input) {
  ms::type_from(c, type_input, 0);
  ms::type_from(c, type_input, 1);
  auto *x = ms::shape_of(c, 0, 3), *weights = ms::shape_of(c, 1, 2);
  if (!x) return;
  ms::DimProto hidden = v_hidden(c, weights);
  ms::set_dims(c, 0, {x->dim(0), x->dim(1), hidden});
  int64_t heads = ms::attr(c, "num_heads", 0);
  ms::DimProto head = heads > 0 && known(hidden) >= 0 ? dim(known(hidden) / heads) : ms::DimProto();
  if (auto* past = ms::shape_of(c, past_input, 5)) {
    bool shared = ms::attr(c, "past_present_share_buffer", 0);
    ms::set_dims(c, 1,
                 {past->dim(0), past->dim(1), past->dim(2), shared ? past->dim(3) : ms::plus(past->dim(3), x->dim(1)),
                  past->dim(4)});
  } else if (past_input >= c.getNumInputs() || !c.getInputType(past_input)) {
    ms::set_dims(c, 1, {dim(2), x->dim(0), dim(heads), x->dim(1), head});
  }
}

void infer_multi_head_attention(Context& c) {
  for (size_t o = 0; o < 4; ++o) ms::type_from(c, 0, o);
  auto* q = ms::shape_of(c, 0);
  if (!q) return;
  int64_t heads = ms::attr(c, "num_heads", 0);
  auto *k = ms::shape_of(c, 1), *v = ms::shape_of(c, 2), *past = ms::shape_of(c, 6, 4);
  ms::DimProto kv_length, head, v_head, out_hidden;
  if (q->dim_size() == 5) {  // packed: batch, length, heads, 3, head size
    kv_length = q->dim(1);
    head = v_head = q->dim(4);
    if (known(head) >= 0) out_hidden = dim(heads * known(head));
  } else if (q->dim_size() == 3) {
    if (heads > 0 && known(q->dim(2)) >= 0) head = dim(known(q->dim(2)) / heads);
    if (k && k->dim_size() == 5) {  // packed: batch, length, heads, 2, head size
      kv_length = k->dim(1);
      v_head = head;
      out_hidden = q->dim(2);
    } else if (k && k->dim_size() == 3 && v && v->dim_size() == 3) {
      kv_length = k->dim(1);
      out_hidden = v->dim(2);
      if (heads > 0 && known(out_hidden) >= 0) v_head = dim(known(out_hidden) / heads);
    } else if (v && v->dim_size() == 4) {  // a cache: batch, heads, length, head size
      kv_length = v->dim(2);
      v_head = v->dim(3);
      if (known(v_head) >= 0) out_hidden = dim(heads * known(v_head));
    } else {
      return;
    }
  } else {
    return;
  }
  ms::set_dims(c, 0, {q->dim(0), q->dim(1), out_hidden});
  bool has_past = c.getNumInputs() > 6 && c.getInputType(6);
  if (has_past && !past) return;
  bool shared = c.getNumInputs() > 8 && c.getInputType(8);
  ms::DimProto total = !past ? kv_length : shared ? past->dim(2) : ms::plus(past->dim(2), kv_length);
  ms::set_dims(c, 1, {q->dim(0), dim(heads), total, head});
  ms::set_dims(c, 2, {q->dim(0), dim(heads), total, v_head});
  if (!shared) ms::set_dims(c, 3, {q->dim(0), dim(heads), q->dim(1), total});
}

void infer_group_query_attention(Context& c) {
  ms::type_from(c, 0, 0);
  for (size_t o : {1, 2}) ms::type_from(c, c.getNumInputs() > o + 2 && c.getInputType(o + 2) ? o + 2 : 0, o);
  ms::type_from(c, 0, 3);
  auto* q = ms::shape_of(c, 0, 3);
  if (!q) return;
  int64_t heads = ms::attr(c, "num_heads", 0), kv_heads = ms::attr(c, "kv_num_heads", 0);
  bool packed = c.getNumInputs() <= 2 || !c.getInputType(2);
  ms::DimProto hidden = q->dim(2);
  if (packed)
    hidden = known(hidden) >= 0 && heads + 2 * kv_heads > 0 ? dim(known(hidden) / (heads + 2 * kv_heads) * heads)
                                                            : ms::DimProto();
  ms::set_dims(c, 0, {q->dim(0), q->dim(1), hidden});
  // The cache length is the larger of the past's and total_sequence_length: known only where that is a constant.
  ms::DimProto head = known(hidden) >= 0 && heads > 0 ? dim(known(hidden) / heads) : ms::DimProto();
  for (size_t o : {1, 2}) {
    if (auto* past = ms::shape_of(c, o + 2, 4))
      ms::set_dims(c, o, {past->dim(0), past->dim(1), ms::DimProto(), past->dim(3)});
    else
      ms::set_dims(c, o, {q->dim(0), dim(kv_heads), ms::DimProto(), head});
  }
  ms::set_dims(c, 3, {q->dim(0), dim(heads), q->dim(1), ms::DimProto()});
}

}  // namespace

void ms_attention_schemas(MsOps& ops) {
  auto op = [&](const char* name, const char* signature) -> MsOp& {
    return ops.emplace_back(name, signature).types("T", kHalfAndFloat);
  };
  op("Attention",
     "input:T, weights:T, bias:T?, mask_index:int32?, past:T?, attention_bias:T?, "
     "past_sequence_length:int32? -> output:T, present:T?")
      .infer([](Context& c) { infer_self_attention(c, 0, 4); });
  op("QAttention",
     "input:Q, weight:W, bias:T, input_scale:T, weight_scale:T, mask_index:int32?, input_zero_point:Q?, "
     "weight_zero_point:W?, past:T? -> output:T, present:T?")
      .types("Q", "int8,uint8")
      .types("W", "int8,uint8")
      .infer([](Context& c) { infer_self_attention(c, 3, 8); });
  op("MultiHeadAttention",
     "query:T, key:T?, value:T?, bias:T?, key_padding_mask:int32?, attention_bias:T?, past_key:T?, "
     "past_value:T?, past_sequence_length:int32?, cache_indirection:int32? -> output:T, present_key:T?, "
     "present_value:T?, qk:QK?")
      .infer(infer_multi_head_attention);
  op("GroupQueryAttention",
     "query:T, key:T?, value:T?, past_key:C?, past_value:C?, seqlens_k:int32, "
     "total_sequence_length:int32, cos_cache:T?, sin_cache:T?, position_ids:int64?, attention_bias:T?, head_sink:T?, "
     "k_scale:float?, v_scale:float?, q_norm_weight:T?, k_norm_weight:T?, query_seqlens:int32? -> output:T, "
     "present_key:C?, present_value:C?, output_qk:T?")
      .infer(infer_group_query_attention);
  op("RotaryEmbedding", "input:T, position_ids:int64, cos_cache:T, sin_cache:T -> output:T").same();
}

}  // namespace epona
