#include "model/ms_schemas.h"

#include <algorithm>
#include <cctype>
#include <mutex>

namespace epona {

namespace onnx = ONNX_NAMESPACE;
using onnx::OpSchema;

namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  std::string part;
  for (char c : text) {
    if (c == ',') {
      parts.push_back(std::move(part));
      part.clear();
    } else if (c != ' ') {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(std::move(part));
  return parts;
}

}  // namespace

MsOp::MsOp(const char* name, std::string_view signature, const char* domain) : name_(name), domain_(domain) {
  size_t arrow = signature.find("->");
  inputs_ = parse(signature.substr(0, arrow));
  outputs_ = parse(signature.substr(arrow + 2));
}

std::vector<MsOp::Parameter> MsOp::parse(std::string_view list) {
  std::vector<Parameter> parameters;
  for (std::string& part : split(list)) {
    auto option = part.back() == '?' ? OpSchema::Optional : part.back() == '*' ? OpSchema::Variadic : OpSchema::Single;
    if (option != OpSchema::Single) part.pop_back();
    size_t colon = part.find(':');
    std::string type = part.substr(colon + 1);
    if (!std::isupper(static_cast<unsigned char>(type[0]))) type = "tensor(" + type + ")";
    parameters.push_back({part.substr(0, colon), std::move(type), option});
  }
  return parameters;
}

MsOp& MsOp::types(const char* variable, std::string_view allowed) {
  std::vector<std::string> list;
  for (std::string& type : split(allowed)) list.push_back("tensor(" + type + ")");
  constraints_.emplace_back(variable, std::move(list));
  return *this;
}

MsOp& MsOp::infer(onnx::InferenceFunction fn) {
  infer_ = std::move(fn);
  return *this;
}

MsOp& MsOp::same() {
  return infer([](ms::Context& c) {
    ms::type_from(c, 0, 0);
    if (auto* shape = ms::shape_of(c, 0)) ms::set_shape(c, 0, *shape);
  });
}

OpSchema MsOp::build() const {
  OpSchema schema;
  schema.SetName(name_).SetDomain(domain_).SinceVersion(1).AllowUncheckedAttributes();
  std::vector<std::string> variables;
  auto declare = [&](const std::vector<Parameter>& parameters, auto add) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      auto& p = parameters[i];
      // A variadic list may be empty and may mix types.
      add(static_cast<int>(i), p.name, p.type, p.option);
      if (p.type.compare(0, 7, "tensor(") != 0) variables.push_back(p.type);
    }
  };
  declare(inputs_, [&](int i, auto& name, auto& type, auto option) {
    schema.Input(i, name, "", type, option, option != OpSchema::Variadic, option == OpSchema::Variadic ? 0 : 1);
  });
  declare(outputs_, [&](int i, auto& name, auto& type, auto option) {
    schema.Output(i, name, "", type, option, option != OpSchema::Variadic, option == OpSchema::Variadic ? 0 : 1);
  });
  std::sort(variables.begin(), variables.end());
  variables.erase(std::unique(variables.begin(), variables.end()), variables.end());
  for (auto& variable : variables) {
    auto it = std::find_if(constraints_.begin(), constraints_.end(), [&](auto& c) { return c.first == variable; });
    schema.TypeConstraint(variable, it != constraints_.end() ? it->second : OpSchema::all_tensor_types_ir13(), "");
  }
  if (infer_) schema.TypeAndShapeInferenceFunction(infer_);
  return schema;
}

void register_ms_schemas() {
  static std::once_flag once;
  std::call_once(once, [] {
    auto& range = onnx::OpSchemaRegistry::DomainToVersionRange::Instance();
    if (!range.Map().contains("com.microsoft")) range.AddDomainToVersion("com.microsoft", 1, 1);
    MsOps ops;
    ms_attention_schemas(ops);
    ms_float_schemas(ops);
    ms_quant_schemas(ops);
    ms_tensor_schemas(ops);
    for (const MsOp& op : ops) onnx::RegisterSchema(op.build());
  });
}

namespace ms {

void set_type(Context& c, size_t out, int32_t elem) {
  if (has_output(c, out)) onnx::updateOutputElemType(c, out, elem);
}

void type_from(Context& c, size_t in, size_t out) {
  if (has_output(c, out) && in < c.getNumInputs() && c.getInputType(in))
    onnx::propagateElemTypeFromInputToOutput(c, in, out);
}

const ShapeProto* shape_of(Context& c, size_t in, int rank) {
  if (!onnx::hasInputShape(c, in)) return nullptr;
  const ShapeProto& shape = onnx::getInputShape(c, in);
  return rank < 0 || shape.dim_size() == rank ? &shape : nullptr;
}

void set_shape(Context& c, size_t out, const ShapeProto& shape) {
  if (has_output(c, out)) onnx::updateOutputShape(c, out, shape);
}

DimProto dim(int64_t value) {
  DimProto d;
  if (value >= 0) d.set_dim_value(value);
  return d;
}

DimProto plus(const DimProto& a, const DimProto& b) {
  return a.has_dim_value() && b.has_dim_value() ? dim(a.dim_value() + b.dim_value()) : DimProto();
}

void set_dims(Context& c, size_t out, std::initializer_list<DimProto> dims) {
  ShapeProto shape;
  for (auto& d : dims) *shape.add_dim() = d;
  set_shape(c, out, shape);
}

onnx::InferenceFunction like(const char* op, int opset) {
  return onnx::OpSchemaRegistry::Schema(op, opset)->GetTypeAndShapeInferenceFunction();
}

void matmul(Context& c, const ShapeProto& a, const ShapeProto& b) {
  auto batch = [](const ShapeProto& s) {
    ShapeProto dims;
    for (int i = 0; i + 2 < s.dim_size(); ++i) *dims.add_dim() = s.dim(i);
    return dims;
  };
  if (a.dim_size() == 0 || b.dim_size() == 0) return;
  ShapeProto shape;
  onnx::bidirectionalBroadcastShapeInference(batch(a), batch(b), shape);
  if (a.dim_size() > 1) *shape.add_dim() = a.dim(a.dim_size() - 2);
  if (b.dim_size() > 1) *shape.add_dim() = b.dim(b.dim_size() - 1);
  set_shape(c, 0, shape);
}

int64_t attr(Context& c, const char* name, int64_t otherwise) { return onnx::getAttribute(c, name, otherwise); }

}  // namespace ms
}  // namespace epona
