#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/defs/schema.h"
#include "onnx/defs/shape_inference.h"

namespace epona {

/// The schema of an operator outside the ONNX standard, as libonnx wants it for checking and shape inference.
/// The signature is text: "X:T, W:T, bias:T?, rest:T* -> Y:T, mean:float?". '?' marks an optional parameter, '*' any
/// number of them. A type is a variable (starts with a capital letter) or an element type ("float", "int32").
/// Attributes are not checked: kernels read and judge them.
class MsOp {
 public:
  MsOp(const char* name, std::string_view signature, const char* domain = "com.microsoft");
  /// Limits a type variable to element types: types("T", "float,float16"). Without it any tensor type will do.
  MsOp& types(const char* variable, std::string_view allowed);
  MsOp& infer(ONNX_NAMESPACE::InferenceFunction fn);
  /// Output 0 has the type and shape of input 0.
  MsOp& same();
  ONNX_NAMESPACE::OpSchema build() const;

 private:
  struct Parameter {
    std::string name, type;
    ONNX_NAMESPACE::OpSchema::FormalParameterOption option;
  };
  static std::vector<Parameter> parse(std::string_view list);

  std::string name_, domain_;
  std::vector<Parameter> inputs_, outputs_;
  std::vector<std::pair<std::string, std::vector<std::string>>> constraints_;
  ONNX_NAMESPACE::InferenceFunction infer_;
};

using MsOps = std::vector<MsOp>;

/// Tells libonnx of the operators outside the standard that we run. Call before the first model is loaded; further
/// calls do nothing.
void register_ms_schemas();

// One function a file of declarations; register_ms_schemas() calls them all.
void ms_attention_schemas(MsOps& ops);
void ms_float_schemas(MsOps& ops);
void ms_quant_schemas(MsOps& ops);
void ms_tensor_schemas(MsOps& ops);

// Shape inference that several schemas share. `in` and `out` are positions; an unknown shape is left unknown.
namespace ms {
using Context = ONNX_NAMESPACE::InferenceContext;
using ShapeProto = ONNX_NAMESPACE::TensorShapeProto;
using DimProto = ShapeProto::Dimension;

inline bool has_output(const Context& c, size_t out) { return out < c.getNumOutputs(); }
/// Sets the element type of an output, if it is there.
void set_type(Context& c, size_t out, int32_t elem);
/// Copies the element type of an input, if both are there.
void type_from(Context& c, size_t in, size_t out);
/// The shape of an input; nullptr when it is absent or unknown, or has another rank than `rank` (-1: any).
const ShapeProto* shape_of(Context& c, size_t in, int rank = -1);
void set_shape(Context& c, size_t out, const ShapeProto& shape);
/// A dim by its number; unknown when negative.
DimProto dim(int64_t value);
/// The sum of two dims, unknown when one is.
DimProto plus(const DimProto& a, const DimProto& b);
void set_dims(Context& c, size_t out, std::initializer_list<DimProto> dims);
int64_t attr(Context& c, const char* name, int64_t otherwise);
/// The inference function of a standard operator, for an operator that is it and more.
ONNX_NAMESPACE::InferenceFunction like(const char* op, int opset);
/// Shape inference of a matrix product of two shapes (numpy.matmul).
void matmul(Context& c, const ShapeProto& a, const ShapeProto& b);
}  // namespace ms

}  // namespace epona
