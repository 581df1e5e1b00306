#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "binding.h"

namespace epona::python {
namespace {

using V = RuntimeValue;

const Tensor& tensor_of(const V& value, const char* what) {
  if (value.kind != V::Kind::tensor)
    throw std::runtime_error(cat("Only OrtValues that are Tensors ", what, "; this one is ", value_type(value)));
  return value.tensor;
}

/// Of an array: bytes and other objects that have a buffer are none.
Tensor of_array(nb::handle array) {
  if (!nb::hasattr(array, "dtype"))
    throw UnfitArray(cat("expected a numpy array, found ", nb::cast<std::string>(nb::str(array.type()))));
  return tensor_from_array(array);
}

/// An array whose elements are already in the form that the tensor type has in memory, as bfloat16 in uint16.
Tensor tensor_with_type(nb::handle array, DataType type) {
  Tensor tensor = of_array(array);
  if (tensor.type == type) return tensor;
  // The bytes of an array stand for packed elements: as many as the array has, so that its end is not used.
  bool packed = is_subbyte(type) && type_bits(tensor.type) == 8;
  bool same_size = packed || type_bits(type) == type_bits(tensor.type);
  if (tensor.type == DataType::string || type == DataType::string || !same_size)
    throw std::runtime_error(cat("an array of tensor(", tensor.type, ") cannot be taken for tensor(", type,
                                 "): the elements are not of the same size"));
  tensor.type = type;
  return tensor;
}

void update(V& value, const Tensor& from) {
  Tensor& to = value.tensor;
  if (value.kind != V::Kind::tensor || from.size() != to.size() || type_bits(from.type) != type_bits(to.type))
    throw std::runtime_error(cat("The input size of numpy arrays does not match the size of the OrtValue: tensor(",
                                 from.type, ") ", from.shape, " into ", value_type(value), " ", to.shape));
  if (from.type != to.type)
    throw std::runtime_error(cat("update_inplace: an array of tensor(", from.type, ") cannot be put into a tensor(",
                                 to.type, "): convert it first"));
  to.assign(from);
}

std::string memory_name(const Tensor& tensor) {
  return tensor.device ? "the memory of " + tensor.device->name() : "host memory";
}

std::pair<int, int> dlpack_device(const Tensor& tensor) {
  constexpr int kHost = 1, kOther = 12;  // kDLCPU, kDLExtDev
  if (!tensor.device) return {kHost, 0};
  int type = tensor.device->dlpack_type();
  return {type ? type : kOther, tensor.device->id()};
}

V sequence_of(nb::sequence items) {
  std::vector<V> values;
  DataType element = DataType::undefined;
  for (nb::handle item : items) {
    V* given = as_ort_value(item);
    V value = given ? *given : V(tensor_from_array(item));
    if (value.kind == V::Kind::tensor) {
      if (element != DataType::undefined && element != value.tensor.type)
        throw std::runtime_error(cat("a tensor(", value.tensor.type, ") cannot be put into a sequence of tensor(",
                                     element, "): all must have one type"));
      element = value.tensor.type;
      // A sequence has items of its own, in the host's memory.
      value.tensor = value.tensor.device ? value.tensor.in_memory_of(nullptr) : value.tensor.clone();
    }
    values.push_back(std::move(value));
  }
  return V::sequence(element, std::move(values));
}

}  // namespace

DataType checked_type(int number) {
  if (number <= 0 || number > static_cast<int>(DataType::int2))
    throw std::runtime_error(cat("tensor type ", number, " is not supported"));
  return static_cast<DataType>(number);
}

Tensor tensor_at(int type, const std::vector<int64_t>& shape, uintptr_t address, std::shared_ptr<Device> device) {
  Tensor tensor;
  tensor.type = checked_type(type);
  if (tensor.type == DataType::string) throw std::runtime_error("strings cannot be bound by address: use an OrtValue");
  for (int64_t dim : shape)
    if (dim < 0) throw std::runtime_error(cat("a tensor cannot have the dimension ", dim));
  tensor.shape = Shape(shape);
  if (!address && tensor.size()) throw std::runtime_error("Pointer to data memory is not valid: it is null");
  tensor.data = reinterpret_cast<void*>(address);
  tensor.device = device.get();
  tensor.owner = std::move(device);
  return tensor;
}

void bind_ort_value(nb::module_& m) {
  nb::class_<V>(m, "OrtValue", "A tensor, sequence or map in the runtime's memory.")
      .def_static(
          "ortvalue_from_numpy",
          [](nb::handle array, nb::handle device) {
            return V(of_array(array).in_memory_of(device_from_python(device).get()));
          },
          nb::arg("array").none(), nb::arg("device").none() = nb::none(),
          "Shares the memory of a numpy array, or copies it to a device.")
      .def_static(
          "ortvalue_from_numpy_with_onnx_type",
          [](nb::handle array, int type) { return V(tensor_with_type(array, checked_type(type))); }, nb::arg("array"),
          nb::arg("onnx_element_type"),
          "Shares the memory of an array and takes its bits for another type of that size.")
      .def_static(
          "ortvalue_from_shape_and_onnx_type",
          [](const std::vector<int64_t>& shape, int type, nb::handle device, const Session* session) {
            for (int64_t dim : shape)
              if (dim < 0) throw std::runtime_error(cat("a tensor cannot have the dimension ", dim));
            auto found = device_from_python(device);
            if (found && session) found = session->own_device(found);
            return V(Tensor::allocate(checked_type(type), Shape(shape), found.get()));
          },
          nb::arg("shape"), nb::arg("type"), nb::arg("device").none() = nb::none(),
          nb::arg("session").none() = nb::none(),
          "An uninitialised tensor; one of a session's device counts in the memory limit of that session.")
      .def_static(
          "ortvalue_from_sequence", [](nb::sequence items) { return sequence_of(std::move(items)); }, nb::arg("items"),
          "A sequence of arrays or OrtValues, copied.")
      .def_static(
          "ortvalue_from_map",
          [](nb::handle keys, nb::handle values) {
            return V::of_map({tensor_from_array(keys).clone(), tensor_from_array(values).clone()});
          },
          nb::arg("keys"), nb::arg("values"), "A map, from the arrays of its keys and values.")
      .def_static(
          "ortvalue_none", [] { return V(); }, "An optional value that is absent.")
      .def_static(
          "from_dlpack", [](nb::handle data, bool) { return V(tensor_from_dlpack(data)); }, nb::arg("data"),
          nb::arg("is_bool_tensor") = false, "Shares the memory of an object that has __dlpack__.")
      .def("to_dlpack", [](const V& v) { return tensor_to_dlpack(tensor_of(v, "have a DLPack form")); })
      .def(
          "__dlpack__",
          [](const V& v, nb::handle, nb::handle, std::optional<std::pair<int, int>> device, std::optional<bool> copy) {
            const Tensor& tensor = tensor_of(v, "have a DLPack form");
            if (device && *device == std::pair(1, 0) && tensor.device)
              return tensor_to_dlpack(tensor.in_memory_of(nullptr));
            if (device && *device != dlpack_device(tensor))
              throw nb::buffer_error(
                  cat("this OrtValue is in ", memory_name(tensor), ", and cannot be exported to another device")
                      .c_str());
            return tensor_to_dlpack(copy.value_or(false) ? tensor.clone() : tensor);
          },
          nb::kw_only(), nb::arg("stream").none() = nb::none(), nb::arg("max_version").none() = nb::none(),
          nb::arg("dl_device").none() = nb::none(), nb::arg("copy").none() = nb::none(),
          "A capsule of the DLPack protocol; the memory is shared unless copy is True.")
      .def(
          "__dlpack_device__", [](const V& v) { return dlpack_device(tensor_of(v, "have a device")); },
          "DLPack's numbers of a kind of device and of one of these; (1, 0): host memory.")
      .def(
          "numpy", [](const V& v) { return value_to_python(v); }, "The value as numpy sees it; tensors share memory.")
      .def("to_sequence",
           [](const V& v) {
             if (v.kind != V::Kind::sequence) throw std::runtime_error(cat("this OrtValue is ", value_type(v)));
             return *v.items;
           })
      .def("shape", [](const V& v) { return tensor_of(v, "have a shape").shape.to_vector(); })
      .def("element_type",
           [](const V& v) {
             if (v.kind != V::Kind::tensor && v.kind != V::Kind::sequence)
               throw std::runtime_error(
                   cat("only tensors and sequences have an element type; this one is ", value_type(v)));
             return static_cast<int>(v.kind == V::Kind::tensor ? v.tensor.type : v.element);
           })
      .def("data_type", &value_type)
      .def("is_tensor", [](const V& v) { return v.kind == V::Kind::tensor; })
      .def("is_tensor_sequence", [](const V& v) { return v.kind == V::Kind::sequence; })
      .def("is_sparse_tensor", [](const V&) { return false; })
      .def("has_value", [](const V& v) { return v.kind != V::Kind::none; })
      .def("data_ptr", [](const V& v) { return reinterpret_cast<uintptr_t>(tensor_of(v, "have an address").data); })
      .def("device_name",
           [](const V& v) {
             const Device* device = tensor_of(v, "have a device").device;
             return device ? device->type() : "cpu";
           })
      .def("device_id",
           [](const V& v) {
             const Device* device = tensor_of(v, "have a device").device;
             return device ? device->id() : 0;
           })
      .def("synchronize",
           [](const V& v) {
             if (v.tensor.device) v.tensor.device->synchronize();
           })
      .def("tensor_size_in_bytes", [](const V& v) { return tensor_of(v, "have a size").bytes(); })
      .def(
          "update_inplace",
          [](V& v, nb::handle array) {
            V* given = as_ort_value(array);
            update(v, given ? tensor_of(*given, "can be copied") : of_array(array));
          },
          nb::arg("data"), "Copies an array or OrtValue of the same type and size into this memory.");
}

}  // namespace epona::python
