#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>  // in every file: a cast of a string must mean the same everywhere

#include <memory>
#include <stdexcept>
#include <string>

#include "base/device.h"
#include "graph/tensor.h"
#include "session/session.h"

namespace epona::python {

namespace nb = nanobind;

/// Parts of the extension module, one a file.
void bind_errors(nb::module_& m);
void bind_options(nb::module_& m);
void bind_ort_value(nb::module_& m);
void bind_session(nb::module_& m);
void bind_io_binding(nb::module_& m);
void bind_providers(nb::module_& m);
/// Lets TypeErrors of the functions bound so far name the argument that does not fit.
void explain_argument_errors(nb::module_& m);

/// Runs the model without the GIL; signals are handled while it goes on (Ctrl-C raises KeyboardInterrupt).
void run_without_gil(const Session& session, std::span<const RuntimeValue> values, std::span<RuntimeValue> results,
                     const RunOptions* options);

/// A Python warning for each provider that a run has left since `before`.
void warn_of_left_providers(const Session& session, const Executable& before);

/// An object that no tensor can be made of.
struct UnfitArray : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A tensor of an array's elements: its memory is shared where it is contiguous and in this machine's byte order.
Tensor tensor_from_array(nb::handle array);
/// An ndarray that takes over the tensor's memory.
nb::object tensor_to_python(const Tensor& tensor);
/// An element type by its number in onnx.TensorProto.DataType.
DataType checked_type(int number);
/// Memory that the caller keeps alive, at an address in the host's memory or a device's.
Tensor tensor_at(int type, const std::vector<int64_t>& shape, uintptr_t address, std::shared_ptr<Device> device = {});
/// The numpy name of an element type; "object" where numpy has none.
const char* numpy_name(DataType type);
/// The numpy dtype of an element type, of ml_dtypes where numpy has none.
nb::object numpy_dtype(DataType type);
/// The device that a Python argument names: None (the host), a (device_type, device_id) or (device_type, device_id,
/// vendor) tuple, or an OrtDevice. RuntimeError, saying what is missing, where this machine has none.
std::shared_ptr<Device> device_from_python(nb::handle object);
void bind_devices(nb::module_& m);

/// Keeps a Python object until the last copy is gone, on whatever thread.
std::shared_ptr<void> keep_object(nb::object object);

/// A capsule of the DLPack protocol for a tensor of numbers, and a tensor that shares the memory of any object that has
/// __dlpack__ (or of such a capsule).
nb::object tensor_to_dlpack(const Tensor& tensor);
Tensor tensor_from_dlpack(nb::handle object);

/// A feed made from a Python object: an ndarray, OrtValue, list (sequence), dict (map) or None (an absent optional),
/// guided by the type the model declares. The memory of arrays is shared, not copied, and kept alive by the value.
RuntimeValue value_from_python(nb::handle object, const Type& type, const std::string& name);
/// A result as Python sees it: ndarray, list or dict. Takes over the tensor's memory.
nb::object value_to_python(const RuntimeValue& value);
/// "tensor(float)", "seq(tensor(int64))", "map(string,tensor(float))", ...
std::string value_type(const RuntimeValue& value);

/// The value inside a Python OrtValue object; nullptr for any other object.
RuntimeValue* as_ort_value(nb::handle object);

}  // namespace epona::python
