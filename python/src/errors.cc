#include <array>

#include "binding.h"

namespace epona::python {
namespace {

struct ExceptionRow {
  Code code;
  const char* name;
};

constexpr std::array kExceptions = {ExceptionRow{Code::fail, "Fail"},
                                    ExceptionRow{Code::invalid_argument, "InvalidArgument"},
                                    ExceptionRow{Code::no_such_file, "NoSuchFile"},
                                    ExceptionRow{Code::no_model, "NoModel"},
                                    ExceptionRow{Code::engine_error, "EngineError"},
                                    ExceptionRow{Code::runtime_exception, "RuntimeException"},
                                    ExceptionRow{Code::invalid_protobuf, "InvalidProtobuf"},
                                    ExceptionRow{Code::model_loaded, "ModelLoaded"},
                                    ExceptionRow{Code::not_implemented, "NotImplemented"},
                                    ExceptionRow{Code::invalid_graph, "InvalidGraph"},
                                    ExceptionRow{Code::ep_fail, "EPFail"},
                                    ExceptionRow{Code::model_load_canceled, "ModelLoadCanceled"},
                                    ExceptionRow{Code::model_requires_compilation, "ModelRequiresCompilation"},
                                    ExceptionRow{Code::not_found, "NotFound"},
                                    ExceptionRow{static_cast<Code>(15), "DeviceReset"}};

std::array<PyObject*, 16> classes{};

}  // namespace

void bind_errors(nb::module_& m) {
  std::string module = "epona.capi.onnxruntime_pybind11_state";
  for (const ExceptionRow& row : kExceptions) {
    PyObject* type = PyErr_NewException((module + "." + row.name).c_str(), PyExc_Exception, nullptr);
    classes[static_cast<size_t>(row.code)] = type;
    m.attr(row.name) = nb::borrow(type);
  }
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      auto code = static_cast<size_t>(error.code());
      std::string text = cat("[ONNXRuntimeError] : ", code, " : ", code_name(error.code()), " : ", error.what());
      PyErr_SetString(code < classes.size() && classes[code] ? classes[code] : PyExc_RuntimeError, text.c_str());
    }
  });
}

}  // namespace epona::python
