#include <epona/version.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

NB_MODULE(_epona, m) { m.attr("__version__") = epona::version(); }
