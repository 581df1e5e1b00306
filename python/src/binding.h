#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "graph/tensor.h"
#include "session/session.h"

namespace epona::python {

namespace nb = nanobind;

/// Parts of the extension module, one a file.
void bind_errors(nb::module_& m);
void bind_options(nb::module_& m);
void bind_values(nb::module_& m);
void bind_session(nb::module_& m);

/// A feed made from a Python object: an ndarray, OrtValue, list (sequence), dict (map) or None (an absent optional),
/// guided by the type the model declares. The memory of arrays is shared, not copied, and kept alive by the value.
RuntimeValue value_from_python(nb::handle object, const Type& type, const std::string& name);
/// A result as Python sees it: ndarray, list or dict. Takes over the tensor's memory.
nb::object value_to_python(const RuntimeValue& value);

/// The value inside a Python OrtValue object; nullptr for any other object.
RuntimeValue* as_ort_value(nb::handle object);

}  // namespace epona::python
