#include "model/ms_schemas.h"

#include <utility>

namespace epona {

namespace onnx = ONNX_NAMESPACE;
using ms::Context;
using ms::dim;

namespace {

constexpr char kBytes[] = "int8,uint8";
constexpr char kQuantised[] = "int8,uint8,int16,uint16,int4,uint4";
constexpr char kReals[] = "float,float16,bfloat16";

// The broadcast of some inputs' shapes.
onnx::InferenceFunction broadcast(std::vector<size_t> inputs, size_t type_of) {
  return [inputs = std::move(inputs), type_of](Context& c) {
    ms::type_from(c, type_of, 0);
    std::vector<const ms::ShapeProto*> shapes;
    for (size_t i : inputs)
      if (auto* shape = ms::shape_of(c, i))
        shapes.push_back(shape);
      else
        return;
    ms::ShapeProto out;
    onnx::multidirectionalBroadcastShapeInference(shapes, out);
    ms::set_shape(c, 0, out);
  };
}

onnx::InferenceFunction product(size_t a, size_t b, int elem) {
  return [=](Context& c) {
    ms::set_type(c, 0, elem);
    auto *left = ms::shape_of(c, a), *right = ms::shape_of(c, b);
    if (left && right) ms::matmul(c, *left, *right);
  };
}

void infer_quantize(Context& c) {
  if (c.getNumInputs() > 2 && c.getInputType(2))
    ms::type_from(c, 2, 0);
  else
    ms::set_type(c, 0, onnx::TensorProto::UINT8);
  if (auto* shape = ms::shape_of(c, 0)) ms::set_shape(c, 0, *shape);
}

void infer_dequantize(Context& c) {
  ms::type_from(c, 1, 0);
  if (auto* shape = ms::shape_of(c, 0)) ms::set_shape(c, 0, *shape);
}

void infer_global_pool(Context& c) {
  ms::type_from(c, 0, 0);
  auto* shape = ms::shape_of(c, 0);
  if (!shape || shape->dim_size() < 3) return;
  const bool last = ms::attr(c, "channels_last", 0) != 0;
  ms::ShapeProto out = *shape;
  for (int d = 2; d < out.dim_size(); ++d) *out.mutable_dim(last ? d - 1 : d) = dim(1);
  ms::set_shape(c, 0, out);
}

void infer_concat(Context& c) {
  ms::type_from(c, 2, 0);
  auto* first = ms::shape_of(c, 2);
  if (!first) return;
  ms::ShapeProto out = *first;
  const int rank = out.dim_size();
  int axis = static_cast<int>(ms::attr(c, "axis", 0));
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return;
  for (size_t i = 5; i < c.getNumInputs(); i += 3) {
    auto* shape = ms::shape_of(c, i, rank);
    *out.mutable_dim(axis) = shape ? ms::plus(out.dim(axis), shape->dim(axis)) : dim(-1);
  }
  ms::set_shape(c, 0, out);
}

void infer_gemm(Context& c) {
  if (c.getNumInputs() > 8 && c.getInputType(8))
    ms::type_from(c, 8, 0);
  else if (c.getNumInputs() > 7 && c.getInputType(7))
    ms::type_from(c, 0, 0);
  else
    ms::set_type(c, 0, onnx::TensorProto::FLOAT);
  auto *a = ms::shape_of(c, 0, 2), *b = ms::shape_of(c, 3, 2);
  if (a && b) ms::set_dims(c, 0, {a->dim(ms::attr(c, "transA", 0) ? 1 : 0), b->dim(ms::attr(c, "transB", 0) ? 0 : 1)});
}

void infer_n_bits(Context& c) {
  ms::type_from(c, 0, 0);
  auto* a = ms::shape_of(c, 0);
  if (!a || a->dim_size() == 0) return;
  ms::ShapeProto out = *a;
  *out.mutable_dim(out.dim_size() - 1) = dim(ms::attr(c, "N", -1));
  ms::set_shape(c, 0, out);
}

// Type of input 0, shape as the standard AveragePool has it.
void infer_average_pool(Context& c) {
  if (ms::attr(c, "channels_last", 0)) return ms::type_from(c, 0, 0);
  ms::like("AveragePool", 19)(c);
}

}  // namespace

void ms_quant_schemas(MsOps& ops) {
  ops.push_back(MsOp("QuantizeLinear", "x:R, y_scale:R, y_zero_point:Q? -> y:Q")
                    .types("R", kReals)
                    .types("Q", kQuantised)
                    .infer(infer_quantize));
  ops.push_back(MsOp("DequantizeLinear", "x:Q, x_scale:R, x_zero_point:Q? -> y:R")
                    .types("Q", "int8,uint8,int16,uint16,int32,int4,uint4")
                    .types("R", kReals)
                    .infer(infer_dequantize));
  for (const char* name : {"QLinearAdd", "QLinearMul"})
    ops.push_back(MsOp(name,
                       "A:T, A_scale:float, A_zero_point:T?, B:T, B_scale:float, B_zero_point:T?, C_scale:float, "
                       "C_zero_point:T? -> C:T")
                      .types("T", kBytes)
                      .infer(broadcast({0, 3}, 0)));
  for (const char* name : {"QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"})
    ops.push_back(MsOp(name, "X:T, X_scale:float, X_zero_point:T?, Y_scale:float, Y_zero_point:T? -> Y:T")
                      .types("T", kBytes)
                      .same());
  ops.push_back(MsOp("QLinearAveragePool", "X:T, x_scale:float, x_zero_point:T?, y_scale:float, y_zero_point:T? -> Y:T")
                    .types("T", kBytes)
                    .infer(infer_average_pool));
  ops.push_back(
      MsOp("QLinearGlobalAveragePool", "X:T, x_scale:float, x_zero_point:T?, y_scale:float, y_zero_point:T? -> Y:T")
          .types("T", kBytes)
          .infer(infer_global_pool));
  ops.push_back(MsOp("QLinearConcat", "Y_scale:float, Y_zero_point:T, inputs:V* -> Y:T")
                    .types("T", kBytes)
                    .types("V", "int8,uint8,float")
                    .infer(infer_concat));
  ops.push_back(MsOp("QLinearWhere",
                     "condition:bool, X:T, x_scale:float, x_zero_point:T, Y:T, y_scale:float, "
                     "y_zero_point:T, z_scale:float, z_zero_point:T -> Z:T")
                    .types("T", kBytes)
                    .infer(broadcast({0, 1, 4}, 1)));
  ops.push_back(MsOp("QGemm",
                     "A:A, a_scale:float, a_zero_point:A, B:B, b_scale:float, b_zero_point:B, C:int32?, "
                     "y_scale:float?, y_zero_point:Y? -> Y:Z")
                    .types("A", kBytes)
                    .types("B", kBytes)
                    .types("Y", kBytes)
                    .types("Z", "int8,uint8,float")
                    .infer(infer_gemm));
  ops.push_back(MsOp("DynamicQuantizeMatMul", "A:float, B:B, b_scale:float, b_zero_point:B?, bias:float? -> Y:float")
                    .types("B", kBytes)
                    .infer(product(0, 1, onnx::TensorProto::FLOAT)));
  ops.push_back(MsOp("MatMulIntegerToFloat",
                     "A:A, B:B, a_scale:float, b_scale:float, a_zero_point:A?, "
                     "b_zero_point:B?, bias:float? -> Y:float")
                    .types("A", kBytes)
                    .types("B", kBytes)
                    .infer(product(0, 1, onnx::TensorProto::FLOAT)));
  ops.push_back(MsOp("MatMulNBits", "A:T, B:uint8, scales:T, zero_points:Z?, g_idx:int32?, bias:T? -> Y:T")
                    .types("T", kReals)
                    .types("Z", "uint8,float,float16,bfloat16")
                    .infer(infer_n_bits));
}

}  // namespace epona
