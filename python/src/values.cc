#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "binding.h"

namespace epona::python {
namespace {

/// Releases a Python buffer from whatever thread drops the last reference.
std::shared_ptr<void> keep_buffer(Py_buffer* view) {
  return {view, [](void* pointer) {
            auto* buffer = static_cast<Py_buffer*>(pointer);
            if (Py_IsInitialized()) {
              nb::gil_scoped_acquire gil;
              PyBuffer_Release(buffer);
            }
            delete buffer;
          }};
}

DataType type_of_format(const char* format, Py_ssize_t item) {
  if (!format) return DataType::uint8;
  if (*format == '<' || *format == '=' || *format == '@') ++format;
  switch (*format) {
    case 'f': return DataType::float32;
    case 'd': return DataType::float64;
    case 'e': return DataType::float16;
    case '?': return DataType::boolean;
    case 'b': return DataType::int8;
    case 'B': return DataType::uint8;
    case 'h': return DataType::int16;
    case 'H': return DataType::uint16;
    case 'i': return DataType::int32;
    case 'I': return DataType::uint32;
    case 'l':
    case 'q': return item == 8 ? DataType::int64 : DataType::int32;
    case 'L':
    case 'Q': return item == 8 ? DataType::uint64 : DataType::uint32;
    case 'Z': return format[1] == 'f' ? DataType::complex64 : DataType::complex128;
    default: return DataType::undefined;
  }
}

using namespace nb::literals;

nb::object numpy() { return nb::module_::import_("numpy"); }

/// Types of ml_dtypes, by dtype name.
DataType type_of_extension(const std::string& name) {
  static const std::pair<const char*, DataType> rows[] = {{"bfloat16", DataType::bfloat16},
                                                          {"float8_e4m3fn", DataType::float8e4m3fn},
                                                          {"float8_e4m3fnuz", DataType::float8e4m3fnuz},
                                                          {"float8_e5m2", DataType::float8e5m2},
                                                          {"float8_e5m2fnuz", DataType::float8e5m2fnuz},
                                                          {"float8_e8m0fnu", DataType::float8e8m0},
                                                          {"int4", DataType::int4},
                                                          {"uint4", DataType::uint4},
                                                          {"float4_e2m1fn", DataType::float4e2m1},
                                                          {"int2", DataType::int2},
                                                          {"uint2", DataType::uint2}};
  for (auto& [text, type] : rows)
    if (name == text) return type;
  return DataType::undefined;
}

const char* extension_name(DataType type) {
  switch (type) {
    case DataType::bfloat16: return "bfloat16";
    case DataType::float8e4m3fn: return "float8_e4m3fn";
    case DataType::float8e4m3fnuz: return "float8_e4m3fnuz";
    case DataType::float8e5m2: return "float8_e5m2";
    case DataType::float8e5m2fnuz: return "float8_e5m2fnuz";
    case DataType::float8e8m0: return "float8_e8m0fnu";
    case DataType::int4: return "int4";
    case DataType::uint4: return "uint4";
    case DataType::float4e2m1: return "float4_e2m1fn";
    case DataType::int2: return "int2";
    case DataType::uint2: return "uint2";
    default: return nullptr;
  }
}

Shape shape_of(nb::handle array) {
  Shape shape;
  for (nb::handle dim : array.attr("shape")) shape.push_back(nb::cast<int64_t>(dim));
  return shape;
}

Tensor strings_from_array(nb::handle array) {
  Tensor tensor = Tensor::allocate(DataType::string, shape_of(array));
  nb::object flat = array.attr("ravel")().attr("tolist")();
  auto* to = tensor.as<std::string>();
  for (nb::handle item : flat) {
    if (nb::isinstance<nb::bytes>(item)) {
      nb::bytes bytes = nb::borrow<nb::bytes>(item);
      to->assign(bytes.c_str(), bytes.size());
    } else {
      nb::object text = nb::isinstance<nb::str>(item) ? nb::borrow(item) : nb::steal(PyObject_Str(item.ptr()));
      Py_ssize_t size = 0;
      const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
      if (!data) throw nb::python_error();
      to->assign(data, static_cast<size_t>(size));
    }
    ++to;
  }
  return tensor;
}

/// An array of ml_dtypes: its bytes, packed for the sub-byte types (which take a byte each in Python).
Tensor tensor_from_extension(nb::handle array, DataType type) {
  nb::object raw = numpy().attr("ascontiguousarray")(array).attr("view")(
      type == DataType::bfloat16 ? "uint16" : "uint8");
  Py_buffer view;
  if (PyObject_GetBuffer(raw.ptr(), &view, PyBUF_C_CONTIGUOUS)) throw nb::python_error();
  Tensor tensor = Tensor::allocate(type, shape_of(array));
  auto* from = static_cast<const uint8_t*>(view.buf);
  if (!is_subbyte(type)) {
    if (view.len) std::memcpy(tensor.data, from, static_cast<size_t>(view.len));
  } else {
    size_t bits = type_bits(type), per_byte = 8 / bits;
    uint8_t mask = static_cast<uint8_t>((1u << bits) - 1);
    std::memset(tensor.data, 0, tensor.bytes());
    for (Py_ssize_t i = 0; i < view.len; ++i)
      tensor.as<uint8_t>()[static_cast<size_t>(i) / per_byte] |=
          static_cast<uint8_t>((from[i] & mask) << (static_cast<size_t>(i) % per_byte * bits));
  }
  PyBuffer_Release(&view);
  return tensor;
}

Tensor tensor_from_array(nb::handle array) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(array.ptr(), view.get(), PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) {
    DataType type = type_of_format(view->format, view->itemsize);
    bool swapped = view->format && (*view->format == '>' || *view->format == '!');
    if (type != DataType::undefined && !swapped) {
      Tensor tensor;
      tensor.type = type;
      tensor.shape = Shape(std::span<const int64_t>(view->shape, static_cast<size_t>(view->ndim)));
      tensor.data = view->buf;
      tensor.owner = keep_buffer(view.release());
      return tensor;
    }
    PyBuffer_Release(view.get());
    view.reset();
  } else {
    PyErr_Clear();
  }
  nb::object dtype = array.attr("dtype");
  std::string kind = nb::cast<std::string>(dtype.attr("kind"));
  if (kind == "O" || kind == "U" || kind == "S" || kind == "T") return strings_from_array(array);
  if (DataType type = type_of_extension(nb::cast<std::string>(dtype.attr("name"))); type != DataType::undefined)
    return tensor_from_extension(array, type);
  if (kind == "V" || kind == "M" || kind == "m")
    throw nb::type_error(cat("arrays of dtype ", nb::cast<std::string>(nb::str(dtype)), " have no tensor type").c_str());
  // Not contiguous, or of the other byte order: make a plain copy.
  nb::object native = numpy().attr("ascontiguousarray")(array, dtype.attr("newbyteorder")("="));
  if (nb::cast<int>(array.attr("ndim")) == 0) native = native.attr("reshape")(nb::make_tuple());
  return tensor_from_array(native);
}

const char* numpy_name(DataType type) {
  switch (type) {
    case DataType::boolean: return "bool";
    case DataType::float32: return "float32";
    case DataType::float64: return "float64";
    default: return is_integer(type) || type == DataType::float16 ? type_name(type) : "object";
  }
}

nb::object tensor_to_python(const Tensor& tensor) {
  std::vector<size_t> dims(tensor.shape.begin(), tensor.shape.end());
  if (tensor.type == DataType::string) {
    nb::list items;
    for (const std::string& text : tensor.span<std::string>())
      items.append(nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape")));
    nb::object array = numpy().attr("empty")(static_cast<int64_t>(tensor.size()), "dtype"_a = "object");
    array[nb::slice(nb::none(), nb::none(), nb::none())] = items;
    nb::list shape;
    for (int64_t dim : tensor.shape) shape.append(dim);
    return array.attr("reshape")(nb::tuple(shape));
  }
  auto* owner = new std::shared_ptr<void>(tensor.owner);
  nb::capsule capsule(owner, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<void>*>(pointer); });
  auto wrap = [&](nb::dlpack::dtype dtype, const std::vector<size_t>& shape) {
    // An array of size zero still needs an address.
    static char nothing[16];
    void* data = tensor.data ? tensor.data : nothing;
    return nb::cast(nb::ndarray<nb::numpy>(data, shape.size(), shape.data(), capsule, nullptr, dtype));
  };
  using nb::dlpack::dtype_code;
  auto bits = static_cast<uint8_t>(type_bits(tensor.type));
  switch (tensor.type) {
    case DataType::float32:
    case DataType::float64:
    case DataType::float16: return wrap({static_cast<uint8_t>(dtype_code::Float), bits, 1}, dims);
    case DataType::boolean: return wrap({static_cast<uint8_t>(dtype_code::Bool), 8, 1}, dims);
    case DataType::uint8:
    case DataType::uint16:
    case DataType::uint32:
    case DataType::uint64: return wrap({static_cast<uint8_t>(dtype_code::UInt), bits, 1}, dims);
    case DataType::int8:
    case DataType::int16:
    case DataType::int32:
    case DataType::int64: return wrap({static_cast<uint8_t>(dtype_code::Int), bits, 1}, dims);
    case DataType::complex64:
    case DataType::complex128: return wrap({static_cast<uint8_t>(dtype_code::Complex), bits, 1}, dims);
    default: break;
  }
  nb::object ml_dtypes;
  try {
    ml_dtypes = nb::module_::import_("ml_dtypes");
  } catch (nb::python_error&) {
    throw std::runtime_error(cat("No corresponding Numpy type for Tensor Type ", tensor.type,
                                 ": install the package ml_dtypes, or add a Cast to the model"));
  }
  nb::object dtype = ml_dtypes.attr(extension_name(tensor.type));
  nb::dlpack::dtype raw{static_cast<uint8_t>(dtype_code::UInt), static_cast<uint8_t>(bits < 8 ? 8 : bits), 1};
  if (!is_subbyte(tensor.type)) return wrap(raw, dims).attr("view")(dtype);
  // numpy gives every element a byte of its own.
  Tensor spread = Tensor::allocate(DataType::uint8, tensor.shape);
  size_t per_byte = 8u / bits;
  bool is_signed = tensor.type == DataType::int4 || tensor.type == DataType::int2;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    auto at = static_cast<size_t>(i);
    unsigned value = tensor.as<uint8_t>()[at / per_byte] >> (at % per_byte * bits) & ((1u << bits) - 1);
    if (is_signed && value >> (bits - 1)) value |= ~0u << bits;
    spread.as<uint8_t>()[i] = static_cast<uint8_t>(value);
  }
  return tensor_to_python(spread).attr("view")(dtype);
}

/// The elements of an int64, float, double or string tensor as Python scalars.
nb::list scalars(const Tensor& tensor) {
  return nb::cast<nb::list>(tensor_to_python(tensor).attr("tolist")());
}

RuntimeValue map_from_dict(nb::dict dict, const Type& type) {
  nb::object keys = numpy().attr("array")(nb::list(dict.keys()), "dtype"_a = numpy_name(type.elem));
  nb::object values = numpy().attr("array")(nb::list(dict.values()),
                                            "dtype"_a = numpy_name(type.inner ? type.inner->elem : DataType::float32));
  return RuntimeValue::of_map({tensor_from_array(keys), tensor_from_array(values)});
}

}  // namespace

RuntimeValue* as_ort_value(nb::handle object) {
  RuntimeValue* value = nullptr;
  if (nb::try_cast(object, value)) return value;
  if (nb::hasattr(object, "_ortvalue") && nb::try_cast(object.attr("_ortvalue"), value)) return value;
  return nullptr;
}

RuntimeValue value_from_python(nb::handle object, const Type& type, const std::string& name) {
  if (object.is_none()) return {};
  if (PyObject_CheckBuffer(object.ptr()) && nb::hasattr(object, "dtype")) return tensor_from_array(object);
  if (RuntimeValue* value = as_ort_value(object)) return *value;
  const Type& wanted = type.kind == Type::Kind::optional && type.inner ? *type.inner : type;
  if (nb::isinstance<nb::dict>(object)) return map_from_dict(nb::borrow<nb::dict>(object), wanted);
  bool listed = nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
  if (listed && wanted.kind == Type::Kind::sequence) {
    std::vector<RuntimeValue> items;
    static const Type unknown;
    const Type& inner = wanted.inner ? *wanted.inner : unknown;
    for (nb::handle item : object) {
      RuntimeValue value = value_from_python(item, inner, name);
      if (value.kind == RuntimeValue::Kind::tensor) {
        if (inner.is_tensor() && value.tensor.type != inner.elem)
          throw std::runtime_error(cat("input '", name, "': a tensor of ", value.tensor.type,
                                       " cannot be put into a sequence of ", inner.to_string()));
        value.tensor = value.tensor.clone();
      }
      items.push_back(std::move(value));
    }
    return RuntimeValue::sequence(inner.elem, std::move(items));
  }
  bool number = nb::isinstance<nb::int_>(object) || nb::isinstance<nb::float_>(object) || nb::isinstance<nb::str>(object);
  if (nb::hasattr(object, "dtype") || listed || number) {
    nb::object array = numpy().attr("asarray")(object);
    // Python numbers carry no element type: take the model's.
    if (!nb::hasattr(object, "dtype") && wanted.is_tensor()) array = array.attr("astype")(numpy_name(wanted.elem));
    return tensor_from_array(array);
  }
  throw std::runtime_error(cat("Unable to handle object of type ", nb::cast<std::string>(nb::str(object.type())),
                               " for input '", name, "': give a numpy array, an OrtValue, a list or a dict"));
}

nb::object value_to_python(const RuntimeValue& value) {
  switch (value.kind) {
    case RuntimeValue::Kind::none: return nb::none();
    case RuntimeValue::Kind::tensor: return tensor_to_python(value.tensor);
    case RuntimeValue::Kind::sequence: {
      nb::list list;
      for (const RuntimeValue& item : *value.items) list.append(value_to_python(item));
      return list;
    }
    case RuntimeValue::Kind::map: {
      nb::dict dict;
      nb::list keys = scalars(value.map->keys), values = scalars(value.map->values);
      for (size_t i = 0; i < keys.size(); ++i) dict[keys[i]] = values[i];
      return dict;
    }
  }
  return nb::none();
}

void bind_values(nb::module_& m) {
  using V = RuntimeValue;
  nb::class_<V>(m, "OrtValue", "A tensor, sequence or map in the runtime's memory.")
      .def_static(
          "ortvalue_from_numpy", [](nb::handle array) { return V(tensor_from_array(array)); }, nb::arg("array"),
          "Shares the memory of a numpy array.")
      .def_static(
          "ortvalue_from_shape_and_type",
          [](const std::vector<int64_t>& shape, int type) {
            if (type <= 0 || type > static_cast<int>(DataType::int2)) throw nb::value_error("unknown element type");
            return V(Tensor::allocate(static_cast<DataType>(type), Shape(shape)));
          },
          nb::arg("shape"), nb::arg("type"))
      .def("numpy", [](const V& v) { return value_to_python(v); }, "The value as numpy sees it; tensors share memory.")
      .def("shape",
           [](const V& v) {
             if (v.kind != V::Kind::tensor) throw std::runtime_error("only tensors have a shape");
             return v.tensor.shape.to_vector();
           })
      .def("element_type",
           [](const V& v) { return static_cast<int>(v.kind == V::Kind::tensor ? v.tensor.type : v.element); })
      .def("data_type",
           [](const V& v) {
             switch (v.kind) {
               case V::Kind::tensor: return cat("tensor(", v.tensor.type, ")");
               case V::Kind::sequence: return cat("seq(tensor(", v.element, "))");
               case V::Kind::map: return std::string("map");
               case V::Kind::none: break;
             }
             return std::string("none");
           })
      .def("is_tensor", [](const V& v) { return v.kind == V::Kind::tensor; })
      .def("is_tensor_sequence", [](const V& v) { return v.kind == V::Kind::sequence; })
      .def("is_sparse_tensor", [](const V&) { return false; })
      .def("has_value", [](const V& v) { return v.kind != V::Kind::none; })
      .def("data_ptr", [](const V& v) { return reinterpret_cast<uintptr_t>(v.tensor.data); })
      .def("device_name", [](const V&) { return "cpu"; })
      .def("tensor_size_in_bytes", [](const V& v) { return v.tensor.bytes(); })
      .def(
          "update_inplace",
          [](V& v, nb::handle array) {
            Tensor from = tensor_from_array(array);
            if (from.type != v.tensor.type || from.size() != v.tensor.size())
              throw std::runtime_error(cat("The input size of numpy arrays does not match the size of the OrtValue: tensor(",
                                           from.type, ") ", from.shape, " into tensor(", v.tensor.type, ") ",
                                           v.tensor.shape));
            if (from.type == DataType::string)
              std::copy_n(from.as<std::string>(), from.size(), v.tensor.as<std::string>());
            else if (size_t bytes = from.bytes())
              std::memcpy(v.tensor.data, from.data, bytes);
          },
          nb::arg("array"));
}

}  // namespace epona::python
