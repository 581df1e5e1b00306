#include "model/tensor_proto.h"

#include <cstring>

#include "model/wire.h"

namespace epona {
namespace {

Shape dims_of(const onnx::TensorProto& proto) {
  Shape dims;
  for (int64_t dim : proto.dims()) {
    if (dim < 0) fail(Code::fail, "Initializer '", proto.name(), "' has the negative dimension ", dim);
    dims.push_back(dim);
  }
  try {
    dims.size();
  } catch (const Error&) {
    fail(Code::fail, "Initializer '", proto.name(), "': Integer overflow: shape ", dims, " is too large");
  }
  return dims;
}

void check_count(const onnx::TensorProto& proto, int64_t found, int64_t expected) {
  if (found != expected)
    fail(Code::fail, "Initializer '", proto.name(), "': data has ", found, " elements, its shape and data type need ",
         expected);
}

template <class T, class Field>
void fill(const onnx::TensorProto& proto, const Field& field, Tensor& tensor) {
  check_count(proto, field.size(), tensor.size());
  T* to = tensor.as<T>();
  for (const auto& item : field) *to++ = static_cast<T>(item);
}

/// Elements stored in the typed fields (float_data, int32_data, ...).
void fill_typed(const onnx::TensorProto& proto, Tensor& tensor) {
  switch (tensor.type) {
    case DataType::float32:
      return fill<float>(proto, proto.float_data(), tensor);
    case DataType::float64:
      return fill<double>(proto, proto.double_data(), tensor);
    case DataType::int64:
      return fill<int64_t>(proto, proto.int64_data(), tensor);
    case DataType::int32:
      return fill<int32_t>(proto, proto.int32_data(), tensor);
    case DataType::int16:
      return fill<int16_t>(proto, proto.int32_data(), tensor);
    case DataType::uint16:
    case DataType::float16:
    case DataType::bfloat16:
      return fill<uint16_t>(proto, proto.int32_data(), tensor);
    case DataType::int8:
      return fill<int8_t>(proto, proto.int32_data(), tensor);
    case DataType::boolean: {
      check_count(proto, proto.int32_data_size(), tensor.size());
      for (int i = 0; i < proto.int32_data_size(); ++i) tensor.as<uint8_t>()[i] = proto.int32_data(i) != 0;
      return;
    }
    case DataType::uint8:
    case DataType::float8e4m3fn:
    case DataType::float8e4m3fnuz:
    case DataType::float8e5m2:
    case DataType::float8e5m2fnuz:
    case DataType::float8e8m0:
      return fill<uint8_t>(proto, proto.int32_data(), tensor);
    case DataType::uint32:
      return fill<uint32_t>(proto, proto.uint64_data(), tensor);
    case DataType::uint64:
      return fill<uint64_t>(proto, proto.uint64_data(), tensor);
    case DataType::complex64: {
      check_count(proto, proto.float_data_size() / 2, tensor.size());
      std::copy(proto.float_data().begin(), proto.float_data().end(), tensor.as<float>());
      return;
    }
    case DataType::complex128: {
      check_count(proto, proto.double_data_size() / 2, tensor.size());
      std::copy(proto.double_data().begin(), proto.double_data().end(), tensor.as<double>());
      return;
    }
    case DataType::string: {
      check_count(proto, proto.string_data_size(), tensor.size());
      std::copy(proto.string_data().begin(), proto.string_data().end(), tensor.as<std::string>());
      return;
    }
    case DataType::uint4:
    case DataType::int4:
    case DataType::float4e2m1:
    case DataType::uint2:
    case DataType::int2: {  // already packed, one byte per int32
      check_count(proto, proto.int32_data_size(), static_cast<int64_t>(tensor.bytes()));
      for (int i = 0; i < proto.int32_data_size(); ++i)
        tensor.as<uint8_t>()[i] = static_cast<uint8_t>(proto.int32_data(i));
      return;
    }
    case DataType::undefined:
      break;
  }
  fail(Code::fail, "Tensor '", proto.name(), "' does not have valid data type.");
}

}  // namespace

Tensor tensor_from_proto(const onnx::TensorProto& proto, WeightSource& source) {
  if (proto.data_type() <= 0 || proto.data_type() > static_cast<int>(DataType::int2))
    fail(Code::fail, "Tensor '", proto.name(), "' does not have valid data type. Invalid tensor data type ",
         proto.data_type(), ".");
  auto type = static_cast<DataType>(proto.data_type());
  Shape dims = dims_of(proto);
  int64_t blob = blob_index(proto.doc_string());
  bool external = proto.data_location() == onnx::TensorProto_DataLocation_EXTERNAL;
  if (blob < 0 && !external && !proto.has_raw_data()) {
    Tensor tensor;
    // The fields hold what they hold: compare before a huge shape asks for memory.
    int64_t stored = proto.float_data_size() + proto.double_data_size() + proto.int32_data_size() +
                     proto.int64_data_size() + proto.uint64_data_size() + proto.string_data_size();
    if (dims.size() > stored * 8) check_count(proto, stored, dims.size());
    tensor = Tensor::allocate(type, std::move(dims));
    fill_typed(proto, tensor);
    return tensor;
  }
  if (type == DataType::string)
    fail(Code::fail, "Initializer '", proto.name(), "': strings cannot be stored as raw or external data");
  size_t expected = type_bytes(type, dims.size());
  std::shared_ptr<void> owner;
  std::span<const std::byte> bytes;
  if (external) {
    bytes = source.external(proto, expected, owner);
  } else if (blob >= 0) {
    if (blob >= static_cast<int64_t>(source.blobs.size()))
      fail(Code::fail, "Initializer '", proto.name(), "' names data that is not there");
    bytes = source.blobs[static_cast<size_t>(blob)];
    owner = source.blob_owner;
  } else {
    bytes = std::as_bytes(std::span(proto.raw_data().data(), proto.raw_data().size()));
  }
  if (bytes.size() != expected)
    fail(Code::fail, "Initializer '", proto.name(), "': raw_data size (", bytes.size(),
         " bytes) does not match expected size from shape and data type (", expected, " bytes)");
  // Small tensors are copied: that aligns them, and rewrites may read them element by element.
  if (!owner || bytes.size() < 64 * 1024) {
    Tensor tensor = Tensor::allocate(type, std::move(dims));
    if (expected) std::memcpy(tensor.data, bytes.data(), expected);
    return tensor;
  }
  Tensor tensor;
  tensor.type = type;
  tensor.shape = std::move(dims);
  tensor.data = const_cast<std::byte*>(bytes.data());
  tensor.owner = std::move(owner);
  return tensor;
}

Tensor tensor_from_proto(const onnx::SparseTensorProto& proto, WeightSource& source) {
  Tensor values = tensor_from_proto(proto.values(), source), indices = tensor_from_proto(proto.indices(), source);
  Shape dims;
  for (int64_t dim : proto.dims()) dims.push_back(dim);
  const std::string& name = proto.values().name();
  if (is_subbyte(values.type) || values.type == DataType::string)
    fail(Code::not_implemented, "sparse initializer '", name, "' of type ", values.type, " is not supported");
  // A dense copy of a sparse tensor must stay reasonable: 4 GiB.
  if (type_bytes(values.type, dims.size()) > (size_t{1} << 32))
    fail(Code::fail, "sparse initializer '", name, "' of shape ", dims, " is too large to be made dense");
  Tensor dense = Tensor::allocate(values.type, dims);
  std::memset(dense.data, 0, dense.bytes());
  auto positions = indices.ints();
  int64_t count = values.size(), rank = dims.rank(), total = dims.size();
  bool linear = indices.shape.rank() == 1;
  if (static_cast<int64_t>(positions.size()) != (linear ? count : count * rank))
    fail(Code::fail, "sparse initializer '", name, "': ", positions.size(), " indices for ", count, " values");
  size_t item = type_bits(values.type) / 8;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    if (linear) {
      at = positions[i];
    } else {
      for (int64_t axis = 0; axis < rank; ++axis) {
        int64_t index = positions[i * rank + axis];
        if (index < 0 || index >= dims[static_cast<int>(axis)]) at = -1;
        if (at >= 0) at = at * dims[static_cast<int>(axis)] + index;
      }
    }
    if (at < 0 || at >= total) fail(Code::fail, "sparse initializer '", name, "': index out of range");
    std::memcpy(dense.as<char>() + at * item, values.as<char>() + i * item, item);
  }
  return dense;
}

onnx::TensorProto tensor_to_proto(const Tensor& tensor, const std::string& name) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(static_cast<int>(tensor.type));
  for (int64_t dim : tensor.shape) proto.add_dims(dim);
  if (tensor.type == DataType::string)
    for (const std::string& text : tensor.span<std::string>()) proto.add_string_data(text);
  else
    proto.set_raw_data(tensor.data, tensor.bytes());
  return proto;
}

Type type_from_proto(const onnx::TypeProto& proto) {
  Type type;
  auto inner = [&](const onnx::TypeProto& element) { type.inner = std::make_shared<Type>(type_from_proto(element)); };
  auto elem = [&](int number) {
    if (number > 0 && number <= static_cast<int>(DataType::int2)) type.elem = static_cast<DataType>(number);
  };
  auto dims = [&](const onnx::TensorShapeProto& shape) {
    type.shape.emplace();
    for (const auto& dim : shape.dim()) {
      if (dim.has_dim_value() && dim.dim_value() >= 0)
        type.shape->push_back({dim.dim_value(), ""});
      else
        type.shape->push_back({-1, dim.dim_param()});
    }
  };
  switch (proto.value_case()) {
    case onnx::TypeProto::kTensorType:
      type.kind = Type::Kind::tensor;
      elem(proto.tensor_type().elem_type());
      if (type.elem == DataType::undefined) return {};
      if (proto.tensor_type().has_shape()) dims(proto.tensor_type().shape());
      break;
    case onnx::TypeProto::kSparseTensorType:
      type.kind = Type::Kind::sparse;
      elem(proto.sparse_tensor_type().elem_type());
      if (proto.sparse_tensor_type().has_shape()) dims(proto.sparse_tensor_type().shape());
      break;
    case onnx::TypeProto::kSequenceType:
      type.kind = Type::Kind::sequence;
      inner(proto.sequence_type().elem_type());
      break;
    case onnx::TypeProto::kOptionalType:
      type.kind = Type::Kind::optional;
      inner(proto.optional_type().elem_type());
      break;
    case onnx::TypeProto::kMapType:
      type.kind = Type::Kind::map;
      elem(proto.map_type().key_type());
      inner(proto.map_type().value_type());
      break;
    default:
      break;
  }
  return type;
}

onnx::TypeProto type_to_proto(const Type& type) {
  onnx::TypeProto proto;
  auto put_dims = [&](onnx::TensorShapeProto& shape) {
    for (const Dim& dim : *type.shape) {
      auto* out = shape.add_dim();
      if (dim.known())
        out->set_dim_value(dim.value);
      else if (!dim.symbol.empty())
        out->set_dim_param(dim.symbol);
    }
  };
  switch (type.kind) {
    case Type::Kind::tensor:
      proto.mutable_tensor_type()->set_elem_type(static_cast<int>(type.elem));
      if (type.shape) put_dims(*proto.mutable_tensor_type()->mutable_shape());
      break;
    case Type::Kind::sparse:
      proto.mutable_sparse_tensor_type()->set_elem_type(static_cast<int>(type.elem));
      if (type.shape) put_dims(*proto.mutable_sparse_tensor_type()->mutable_shape());
      break;
    case Type::Kind::sequence:
      *proto.mutable_sequence_type()->mutable_elem_type() = type_to_proto(*type.inner);
      break;
    case Type::Kind::optional:
      *proto.mutable_optional_type()->mutable_elem_type() = type_to_proto(*type.inner);
      break;
    case Type::Kind::map:
      proto.mutable_map_type()->set_key_type(static_cast<int>(type.elem));
      *proto.mutable_map_type()->mutable_value_type() = type_to_proto(*type.inner);
      break;
    case Type::Kind::unknown:
      break;
  }
  return proto;
}

}  // namespace epona
