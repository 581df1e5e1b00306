#include <epona/version.h>
#include <nanobind/stl/string_view.h>

#include "binding.h"
#include "model/check.h"

NB_MODULE(_epona, m) {
  m.attr("__version__") = epona::version();
  // The first model would otherwise wait for it: about 15 ms.
  epona::ensure_schemas();
  epona::python::bind_errors(m);
  epona::python::bind_options(m);
  epona::python::bind_devices(m);
  epona::python::bind_ort_value(m);
  epona::python::bind_session(m);
  epona::python::bind_io_binding(m);
  epona::python::bind_providers(m);
  epona::python::explain_argument_errors(m);
}
