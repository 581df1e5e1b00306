#include "model/ms_schemas.h"

namespace epona {

namespace onnx = ONNX_NAMESPACE;
using ms::Context;
using ms::dim;

namespace {

constexpr char kHalfAndFloat[] = "float,float16,bfloat16";
constexpr char kFloats[] = "float,float16,bfloat16,double";

// The dims of a FusedMatMul operand as the product sees them: transBatch moves dim 0 behind the batch dims, trans swaps
// the last two.
ms::ShapeProto transposed(const ms::ShapeProto& s, bool trans, bool trans_batch) {
  ms::ShapeProto t = s;
  int rank = s.dim_size();
  if (rank > 2 && trans_batch) {
    for (int i = 0; i + 2 < rank; ++i) *t.mutable_dim(i) = s.dim(i + 1);
    *t.mutable_dim(rank - 2) = s.dim(0);
  }
  if (rank > 1 && trans) t.mutable_dim()->SwapElements(rank - 2, rank - 1);
  return t;
}

void infer_fused_matmul(Context& c) {
  ms::type_from(c, 0, 0);
  auto *a = ms::shape_of(c, 0), *b = ms::shape_of(c, 1);
  if (!a || !b) return;
  ms::matmul(c, transposed(*a, ms::attr(c, "transA", 0), ms::attr(c, "transBatchA", 0)),
             transposed(*b, ms::attr(c, "transB", 0), ms::attr(c, "transBatchB", 0)));
}

void infer_skip_layer_norm(Context& c) {
  ms::type_from(c, 0, 0);
  ms::set_type(c, 1, onnx::TensorProto::FLOAT);
  ms::set_type(c, 2, onnx::TensorProto::FLOAT);
  ms::type_from(c, 0, 3);
  auto* shape = ms::shape_of(c, 0);
  if (!shape) return;
  ms::set_shape(c, 0, *shape);
  ms::set_shape(c, 3, *shape);
  ms::ShapeProto rows = *shape;
  if (rows.dim_size() > 0) *rows.mutable_dim(rows.dim_size() - 1) = dim(1);
  ms::set_shape(c, 1, rows);
  ms::set_shape(c, 2, rows);
}

void infer_simplified_layer_norm(Context& c) {
  ms::type_from(c, 1, 0);
  ms::set_type(c, 1, onnx::TensorProto::FLOAT);
  auto* shape = ms::shape_of(c, 0);
  if (!shape) return;
  ms::set_shape(c, 0, *shape);
  int rank = shape->dim_size(), axis = static_cast<int>(ms::attr(c, "axis", -1));
  if (axis < 0) axis += rank;
  ms::ShapeProto rows = *shape;
  for (int i = std::max(axis, 0); i < rank; ++i) *rows.mutable_dim(i) = dim(1);
  ms::set_shape(c, 1, rows);
}

void infer_embed_layer_norm(Context& c) {
  ms::type_from(c, 2, 0);
  ms::set_type(c, 1, onnx::TensorProto::INT32);
  ms::type_from(c, 2, 2);
  auto *ids = ms::shape_of(c, 0, 2), *table = ms::shape_of(c, 2, 2);
  if (ids && table) {
    ms::set_dims(c, 0, {ids->dim(0), ids->dim(1), table->dim(1)});
    ms::set_dims(c, 2, {ids->dim(0), ids->dim(1), table->dim(1)});
  }
  if (ids) ms::set_dims(c, 1, {ids->dim(0)});
}

void infer_bias_split_gelu(Context& c) {
  ms::type_from(c, 0, 0);
  auto* shape = ms::shape_of(c, 0);
  if (!shape || shape->dim_size() == 0) return;
  ms::ShapeProto out = *shape;
  auto* last = out.mutable_dim(out.dim_size() - 1);
  *last = last->has_dim_value() ? dim(last->dim_value() / 2) : ms::DimProto();
  ms::set_shape(c, 0, out);
}

void infer_dynamic_quantize_lstm(Context& c) {
  for (size_t o = 0; o < 3; ++o) ms::type_from(c, 0, o);
  auto* direction = c.getAttribute("direction");
  ms::DimProto directions = dim(direction && direction->s() == "bidirectional" ? 2 : 1);
  ms::DimProto hidden = dim(ms::attr(c, "hidden_size", -1));
  auto* x = ms::shape_of(c, 0, 3);
  if (!x) return;
  ms::set_dims(c, 0, {x->dim(0), directions, x->dim(1), hidden});
  ms::set_dims(c, 1, {directions, x->dim(1), hidden});
  ms::set_dims(c, 2, {directions, x->dim(1), hidden});
}

void infer_same_two(Context& c) {
  for (size_t o = 0; o < 2; ++o) {
    ms::type_from(c, 0, o);
    if (auto* shape = ms::shape_of(c, 0)) ms::set_shape(c, o, *shape);
  }
}

}  // namespace

void ms_float_schemas(MsOps& ops) {
  auto op = [&](const char* name, const char* signature, const char* domain = "com.microsoft") -> MsOp& {
    return ops.emplace_back(name, signature, domain);
  };
  op("FusedMatMul", "A:T, B:T -> Y:T").types("T", kFloats).infer(infer_fused_matmul);
  op("TransposeMatMul", "A:T, B:T -> Y:T").types("T", kFloats).infer(infer_fused_matmul);
  op("FusedGemm", "A:T, B:T, C:T? -> Y:T").infer(ms::like("Gemm", 13));
  op("FusedConv", "X:T, W:T, B:T?, Z:T? -> Y:T").types("T", kFloats).infer(ms::like("Conv", 22));

  op("Gelu", "X:T -> Y:T").types("T", kFloats).same();
  op("BiasGelu", "A:T, B:T -> C:T").types("T", kFloats).same();
  op("FastGelu", "X:T, bias:T? -> Y:T").types("T", kFloats).same();
  op("QuickGelu", "X:T -> Y:T").types("T", kFloats).same();
  op("BiasSplitGelu", "X:T, bias:T -> Y:T").types("T", kFloats).infer(infer_bias_split_gelu);
  op("BiasAdd", "X:T, bias:T, skip:T -> Y:T").types("T", kFloats).same();
  op("BiasSoftmax", "data:T, bias:T -> output:T").types("T", kFloats).same();

  op("SkipLayerNormalization",
     "input:T, skip:T, gamma:T, beta:T?, bias:T? -> output:T, mean:float?, inv_std_var:float?, "
     "input_skip_bias_sum:T?")
      .types("T", kHalfAndFloat)
      .infer(infer_skip_layer_norm);
  op("SkipSimplifiedLayerNormalization",
     "input:T, skip:T, gamma:T, bias:T? -> output:T, mean:float?, "
     "inv_std_var:float?, input_skip_bias_sum:T?")
      .types("T", kHalfAndFloat)
      .infer(infer_skip_layer_norm);
  // onnxruntime puts this one into the standard's own domain.
  op("SimplifiedLayerNormalization", "X:T, scale:V -> Y:V, inv_std_var:U?", "")
      .types("T", kFloats)
      .types("V", kFloats)
      .types("U", "float,double")
      .infer(infer_simplified_layer_norm);
  op("EmbedLayerNormalization",
     "input_ids:int32, segment_ids:int32?, word_embedding:T, position_embedding:T, "
     "segment_embedding:T?, gamma:T, beta:T, mask:int32?, position_ids:int32? -> output:T, mask_index:int32?, "
     "embedding_sum:T?")
      .types("T", kHalfAndFloat)
      .infer(infer_embed_layer_norm);
  op("GroupNorm", "X:T, gamma:M, beta:M -> Y:T").types("T", kHalfAndFloat).types("M", kHalfAndFloat).same();
  op("SkipGroupNorm", "X:T, gamma:M, beta:M, skip:T, bias:T? -> Y:T, S:T?")
      .types("T", kHalfAndFloat)
      .types("M", kHalfAndFloat)
      .infer(infer_same_two);

  op("DynamicQuantizeLSTM",
     "X:float, W:Q, R:Q, B:float?, sequence_lens:int32?, initial_h:float?, initial_c:float?, "
     "P:float?, W_scale:float, W_zero_point:Q, R_scale:float, R_zero_point:Q -> Y:float?, Y_h:float?, Y_c:float?")
      .types("Q", "uint8,int8")
      .infer(infer_dynamic_quantize_lstm);
  op("NhwcMaxPool", "x:T -> y:T").types("T", "int8,uint8").infer([](Context& c) { ms::type_from(c, 0, 0); });
  op("Inverse", "X:T -> Y:T").types("T", kFloats).same();
  op("CDist", "A:T, B:T -> C:T").types("T", "float,double").infer([](Context& c) {
    ms::type_from(c, 0, 0);
    auto *a = ms::shape_of(c, 0, 2), *b = ms::shape_of(c, 1, 2);
    if (a && b) ms::set_dims(c, 0, {a->dim(0), b->dim(0)});
  });
}

}  // namespace epona
