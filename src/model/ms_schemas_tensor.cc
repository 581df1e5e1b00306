#include "model/ms_schemas.h"
#include "onnx/defs/tensor_proto_util.h"

namespace epona {

namespace onnx = ONNX_NAMESPACE;
using ms::Context;
using ms::dim;

namespace {

constexpr const char* kNumbers = "float,double,float16,bfloat16,int8,int16,int32,int64,uint8,uint16,uint32,uint64";

void infer_tokenizer(Context& c) {
  ms::set_type(c, 0, onnx::TensorProto::STRING);
  if (auto* shape = ms::shape_of(c, 0)) {
    ms::ShapeProto out = *shape;
    out.add_dim();
    ms::set_shape(c, 0, out);
  }
}

void infer_expand_dims(Context& c) {
  ms::type_from(c, 0, 0);
  auto* shape = ms::shape_of(c, 0);
  auto* axis = c.getInputData(1);
  if (!shape || !axis) return;
  auto values = onnx::ParseData<int32_t>(axis);
  int64_t rank = shape->dim_size(), at = values.size() == 1 ? values[0] : rank + 1;
  if (at < 0) at += rank + 1;
  if (at < 0 || at > rank) return;
  ms::ShapeProto out;
  for (int i = 0; i <= rank; ++i) {
    if (i == at) *out.add_dim() = dim(1);
    if (i < rank) *out.add_dim() = shape->dim(i);
  }
  ms::set_shape(c, 0, out);
}

void infer_type(Context& c) { ms::type_from(c, 0, 0); }

void infer_unique(Context& c) {
  ms::type_from(c, 0, 0);
  ms::set_type(c, 1, onnx::TensorProto::INT64);
  ms::set_type(c, 2, onnx::TensorProto::INT64);
  if (auto* shape = ms::shape_of(c, 0, 1)) ms::set_shape(c, 1, *shape);
  ms::set_dims(c, 0, {dim(-1)});
  ms::set_dims(c, 2, {dim(-1)});
}

void infer_crop_and_resize(Context& c) {
  ms::type_from(c, 0, 0);
  auto *x = ms::shape_of(c, 0, 4), *rois = ms::shape_of(c, 1, 2);
  if (x && rois) ms::set_dims(c, 0, {rois->dim(0), x->dim(1), dim(-1), dim(-1)});
}

void infer_gather_block_quantized(Context& c) {
  ms::type_from(c, 2, 0);
  auto *data = ms::shape_of(c, 0), *indices = ms::shape_of(c, 1);
  if (!data || !indices) return;
  int64_t rank = data->dim_size(), axis = ms::attr(c, "gather_axis", 0);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return;
  bool bytes = c.getInputType(0)->tensor_type().elem_type() == onnx::TensorProto::UINT8;
  int64_t packed = bytes && ms::attr(c, "bits", 4) == 4 ? 2 : 1;  // elements a byte, along the last dim
  ms::ShapeProto out;
  for (int i = 0; i < rank; ++i) {
    if (i == axis) {
      for (auto& d : indices->dim()) *out.add_dim() = d;
    } else if (i == rank - 1 && packed > 1) {
      *out.add_dim() = data->dim(i).has_dim_value() ? dim(data->dim(i).dim_value() * packed) : dim(-1);
    } else {
      *out.add_dim() = data->dim(i);
    }
  }
  ms::set_shape(c, 0, out);
}

void infer_murmur(Context& c) {
  ms::set_type(c, 0, ms::attr(c, "positive", 1) ? onnx::TensorProto::UINT32 : onnx::TensorProto::INT32);
  if (auto* shape = ms::shape_of(c, 0)) ms::set_shape(c, 0, *shape);
}

}  // namespace

void ms_tensor_schemas(MsOps& ops) {
  auto op = [&](const char* name, const char* signature) -> MsOp& { return ops.emplace_back(name, signature); };
  op("Tokenizer", "X:string -> Y:string").infer(infer_tokenizer);
  op("Trilu", "X:T, k:int64? -> Y:T").same();
  op("Unique", "x:T -> y:T, idx:int64, counts:int64").infer(infer_unique);
  op("ExpandDims", "X:T, axis:int32 -> Y:T").infer(infer_expand_dims);
  op("Range", "start:T, limit:T, delta:T? -> Y:T").types("T", kNumbers).infer(infer_type);
  op("GatherND", "data:T, indices:I -> output:T").types("I", "int32,int64").infer(infer_type);
  op("Pad", "data:T, pads:int64, value:T? -> output:T").infer(infer_type);
  op("GridSample", "X:T, Grid:G -> Y:T").types("G", "float,double,float16").infer(ms::like("GridSample", 16));
  op("CropAndResize", "X:T, rois:T, batch_indices:int32, crop_size:int32 -> Y:T")
      .types("T", "float,double,float16")
      .infer(infer_crop_and_resize);
  op("GatherBlockQuantized", "data:D, indices:I, scales:S, zero_points:D? -> output:S")
      .types("D", "int4,uint4,uint8")
      .types("I", "int32,int64")
      .types("S", "float,float16,bfloat16")
      .infer(infer_gather_block_quantized);
  op("UnfoldTensor", "input:T -> output:T").infer(infer_type);
  op("MurmurHash3", "X:T -> Y:H")
      .types("T", "float,double,int32,int64,uint32,uint64,string")
      .types("H", "int32,uint32")
      .infer(infer_murmur);
}

}  // namespace epona
