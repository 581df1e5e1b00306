#include <nanobind/ndarray.h>

#include <cstring>
#include <optional>

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
    case 'f':
      return DataType::float32;
    case 'd':
      return DataType::float64;
    case 'e':
      return DataType::float16;
    case '?':
      return DataType::boolean;
    case 'b':
      return DataType::int8;
    case 'B':
      return DataType::uint8;
    case 'h':
      return DataType::int16;
    case 'H':
      return DataType::uint16;
    case 'i':
      return DataType::int32;
    case 'I':
      return DataType::uint32;
    case 'l':
    case 'q':
      return item == 8 ? DataType::int64 : DataType::int32;
    case 'L':
    case 'Q':
      return item == 8 ? DataType::uint64 : DataType::uint32;
    case 'Z':  // "Zg" is a complex of long doubles
      return format[1] == 'f' ? DataType::complex64 : format[1] == 'd' ? DataType::complex128 : DataType::undefined;
    default:
      return DataType::undefined;
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
    case DataType::bfloat16:
      return "bfloat16";
    case DataType::float8e4m3fn:
      return "float8_e4m3fn";
    case DataType::float8e4m3fnuz:
      return "float8_e4m3fnuz";
    case DataType::float8e5m2:
      return "float8_e5m2";
    case DataType::float8e5m2fnuz:
      return "float8_e5m2fnuz";
    case DataType::float8e8m0:
      return "float8_e8m0fnu";
    case DataType::int4:
      return "int4";
    case DataType::uint4:
      return "uint4";
    case DataType::float4e2m1:
      return "float4_e2m1fn";
    case DataType::int2:
      return "int2";
    case DataType::uint2:
      return "uint2";
    default:
      return nullptr;
  }
}

nb::object ml_dtypes(DataType type) {
  try {
    return nb::module_::import_("ml_dtypes");
  } catch (nb::python_error&) {
    throw std::runtime_error(cat("No corresponding Numpy type for Tensor Type ", type,
                                 ": install the package ml_dtypes, or add a Cast to the model"));
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
      if (const char* data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) {
        to->assign(data, static_cast<size_t>(size));
      } else {  // bytes that were no UTF-8 when they became a str
        PyErr_Clear();
        nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
        if (!bytes.is_valid()) throw nb::python_error();
        to->assign(PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr())));
      }
    }
    ++to;
  }
  return tensor;
}

/// An array of ml_dtypes: its bytes, packed for the sub-byte types (which take a byte each in Python).
Tensor tensor_from_extension(nb::handle array, DataType type) {
  nb::object raw =
      numpy().attr("ascontiguousarray")(array).attr("view")(type == DataType::bfloat16 ? "uint16" : "uint8");
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

/// The memory of a contiguous array whose elements a tensor can have.
std::optional<Tensor> view_of_buffer(nb::handle array) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(array.ptr(), view.get(), PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
    PyErr_Clear();
    return {};
  }
  DataType type = type_of_format(view->format, view->itemsize);
  bool swapped = view->format && (*view->format == '>' || *view->format == '!');
  if (type == DataType::undefined || swapped) {
    PyBuffer_Release(view.get());
    return {};
  }
  Tensor tensor;
  tensor.type = type;
  tensor.shape = Shape(std::span<const int64_t>(view->shape, static_cast<size_t>(view->ndim)));
  tensor.data = view->buf;
  tensor.owner = keep_buffer(view.release());
  return tensor;
}

}  // namespace

std::shared_ptr<void> keep_object(nb::object object) {
  return {new nb::object(std::move(object)), [](void* pointer) {
            auto* kept = static_cast<nb::object*>(pointer);
            if (!Py_IsInitialized()) {
              kept->release();
            } else {
              nb::gil_scoped_acquire gil;
              kept->reset();
            }
            delete kept;
          }};
}

Tensor tensor_from_array(nb::handle array) {
  if (auto tensor = view_of_buffer(array)) return *tensor;
  if (!nb::hasattr(array, "dtype"))
    throw UnfitArray(cat("expected a numpy array, found ", nb::cast<std::string>(nb::str(array.type()))));
  nb::object dtype = array.attr("dtype");
  std::string kind = nb::cast<std::string>(dtype.attr("kind"));
  if (kind == "O" || kind == "U" || kind == "S" || kind == "T") return strings_from_array(array);
  if (DataType type = type_of_extension(nb::cast<std::string>(dtype.attr("name"))); type != DataType::undefined)
    return tensor_from_extension(array, type);
  if (kind != "V" && kind != "M" && kind != "m") {
    // Not contiguous, or of the other byte order: make a plain copy.
    nb::object native = numpy().attr("ascontiguousarray")(array, dtype.attr("newbyteorder")("="));
    if (nb::cast<int>(array.attr("ndim")) == 0) native = native.attr("reshape")(nb::make_tuple());
    if (auto tensor = view_of_buffer(native)) return *tensor;
  }
  throw UnfitArray(cat("arrays of dtype ", nb::cast<std::string>(nb::str(dtype)), " have no tensor type"));
}

const char* numpy_name(DataType type) {
  switch (type) {
    case DataType::boolean:
      return "bool";
    case DataType::float32:
      return "float32";
    case DataType::float64:
      return "float64";
    default:
      return is_integer(type) || type == DataType::float16 ? type_name(type) : "object";
  }
}

nb::object numpy_dtype(DataType type) {
  if (const char* name = extension_name(type)) return ml_dtypes(type).attr(name);
  return numpy().attr("dtype")(numpy_name(type));
}

nb::object tensor_to_python(const Tensor& tensor) {
  if (tensor.device) return tensor_to_python(tensor.in_memory_of(nullptr));
  std::vector<size_t> dims(tensor.shape.begin(), tensor.shape.end());
  if (tensor.type == DataType::string) {
    nb::list items;
    for (const std::string& text : tensor.span<std::string>())
      items.append(
          nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape")));
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
    case DataType::float16:
      return wrap({static_cast<uint8_t>(dtype_code::Float), bits, 1}, dims);
    case DataType::boolean:
      return wrap({static_cast<uint8_t>(dtype_code::Bool), 8, 1}, dims);
    case DataType::uint8:
    case DataType::uint16:
    case DataType::uint32:
    case DataType::uint64:
      return wrap({static_cast<uint8_t>(dtype_code::UInt), bits, 1}, dims);
    case DataType::int8:
    case DataType::int16:
    case DataType::int32:
    case DataType::int64:
      return wrap({static_cast<uint8_t>(dtype_code::Int), bits, 1}, dims);
    case DataType::complex64:
    case DataType::complex128:
      return wrap({static_cast<uint8_t>(dtype_code::Complex), bits, 1}, dims);
    default:
      break;
  }
  nb::object dtype = numpy_dtype(tensor.type);
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

}  // namespace epona::python
