#include <nanobind/ndarray.h>

#include <cstring>

#include "binding.h"

namespace epona::python {
namespace {

using Code = nb::dlpack::dtype_code;

struct Row {
  DataType type;
  Code code;
  int bits;
};

constexpr Row kRows[] = {{DataType::float32, Code::Float, 32},
                         {DataType::float64, Code::Float, 64},
                         {DataType::float16, Code::Float, 16},
                         {DataType::bfloat16, Code::Bfloat, 16},
                         {DataType::uint8, Code::UInt, 8},
                         {DataType::uint16, Code::UInt, 16},
                         {DataType::uint32, Code::UInt, 32},
                         {DataType::uint64, Code::UInt, 64},
                         {DataType::int8, Code::Int, 8},
                         {DataType::int16, Code::Int, 16},
                         {DataType::int32, Code::Int, 32},
                         {DataType::int64, Code::Int, 64},
                         {DataType::boolean, Code::Bool, 8},
                         {DataType::complex64, Code::Complex, 64},
                         {DataType::complex128, Code::Complex, 128},
                         {DataType::float8e4m3fn, Code::Float8_E4M3FN, 8},
                         {DataType::float8e4m3fnuz, Code::Float8_E4M3FNUZ, 8},
                         {DataType::float8e5m2, Code::Float8_E5M2, 8},
                         {DataType::float8e5m2fnuz, Code::Float8_E5M2FNUZ, 8},
                         {DataType::float8e8m0, Code::Float8_E8M0FNU, 8}};

/// Copies elements of any strides into row-major order.
void gather(const std::byte* from, std::byte*& to, size_t item, const nb::ndarray<nb::ro>& array, size_t axis) {
  if (axis == array.ndim()) {
    std::memcpy(to, from, item);
    to += item;
    return;
  }
  auto step = array.stride(axis) * static_cast<int64_t>(item);
  for (size_t i = 0; i < array.shape(axis); ++i)
    gather(from + static_cast<int64_t>(i) * step, to, item, array, axis + 1);
}

bool row_major(const nb::ndarray<nb::ro>& array) {
  int64_t expected = 1;
  for (size_t axis = array.ndim(); axis-- > 0;) {
    if (array.shape(axis) != 1 && array.stride(axis) != expected) return false;
    expected *= static_cast<int64_t>(array.shape(axis));
  }
  return true;
}

}  // namespace

nb::object tensor_to_dlpack(const Tensor& tensor) {
  if (tensor.device && tensor.device->dlpack_type() == 0)
    throw nb::buffer_error(
        cat("this OrtValue is in the memory of ", tensor.device->name(), ", which DLPack has no name for: use numpy()")
            .c_str());
  for (const Row& row : kRows) {
    if (row.type != tensor.type) continue;
    std::vector<size_t> dims(tensor.shape.begin(), tensor.shape.end());
    auto* owner = new std::shared_ptr<void>(tensor.owner);
    nb::capsule capsule(owner, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<void>*>(pointer); });
    nb::dlpack::dtype dtype{static_cast<uint8_t>(row.code), static_cast<uint8_t>(row.bits), 1};
    int device = tensor.device ? tensor.device->dlpack_type() : nb::device::cpu::value;
    int id = tensor.device ? tensor.device->id() : 0;
    return nb::cast(nb::ndarray<>(tensor.data, dims.size(), dims.data(), capsule, nullptr, dtype, device, id));
  }
  throw std::runtime_error(cat("DLPack has no element type for tensor(", tensor.type, "): use numpy()"));
}

Tensor tensor_from_dlpack(nb::handle object) {
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array))
    throw nb::type_error(
        cat("from_dlpack: an object of type ", nb::cast<std::string>(nb::str(object.type())), " gives no DLPack tensor")
            .c_str());
  if (array.device_type() != nb::device::cpu::value && array.device_type() != nb::device::cuda_host::value)
    throw std::runtime_error(cat("from_dlpack: the tensor is on device type ", array.device_type(),
                                 "; only host memory can be read here: copy it to the CPU first"));
  nb::dlpack::dtype dtype = array.dtype();
  Tensor tensor;
  for (const Row& row : kRows)
    if (dtype == nb::dlpack::dtype{static_cast<uint8_t>(row.code), static_cast<uint8_t>(row.bits), 1})
      tensor.type = row.type;
  if (tensor.type == DataType::undefined)
    throw std::runtime_error(cat("from_dlpack: DLPack type (code ", int{dtype.code}, ", ", int{dtype.bits}, " bits, ",
                                 dtype.lanes, " lanes) has no ONNX element type"));
  for (size_t axis = 0; axis < array.ndim(); ++axis) tensor.shape.push_back(static_cast<int64_t>(array.shape(axis)));
  auto* data = static_cast<const std::byte*>(array.data());
  if (!row_major(array)) {
    tensor = Tensor::allocate(tensor.type, tensor.shape);
    auto* to = static_cast<std::byte*>(tensor.data);
    if (tensor.size()) gather(data, to, type_bits(tensor.type) / 8, array, 0);
    return tensor;
  }
  tensor.data = const_cast<std::byte*>(data);
  auto* kept = new nb::ndarray<nb::ro>(std::move(array));
  tensor.owner = {kept, [](void* pointer) {
                    if (Py_IsInitialized()) {
                      nb::gil_scoped_acquire gil;
                      delete static_cast<nb::ndarray<nb::ro>*>(pointer);
                    }
                  }};
  return tensor;
}

}  // namespace epona::python
