#include <array>
#include <cstring>
#include <unordered_map>

#include "binding.h"

namespace epona::python {
namespace {

// When no overload takes the arguments, nanobind lists the signatures and the types that were given, and leaves it to the
// reader to find the one that does not fit; setters of properties have not even a name. Functions of the module are called
// through a thunk, which on such a TypeError lets epona.argument_errors say which argument of which function it was.

struct Call {
  PyObject* function;
  PyObject* const* arguments;
  size_t count;
  PyObject* keywords;  ///< names of the last arguments, which follow the `count` others
};

std::unordered_map<PyObject*, std::string>& names() {
  static auto& map = *new std::unordered_map<PyObject*, std::string>;
  return map;
}

nb::object explanation(const Call& call, nb::handle text) {
  auto name = names().find(call.function);
  std::string called = name == names().end() ? "" : name->second;
  nb::list positional;
  for (size_t i = 0; i < call.count; ++i) {
    bool unborn = i == 0 && called.ends_with(".__init__");  // nobody may see an object that has not been made
    positional.append(unborn ? nb::handle(Py_None) : nb::handle(call.arguments[i]));
  }
  nb::dict named;
  for (Py_ssize_t i = 0; call.keywords && i < PyTuple_GET_SIZE(call.keywords); ++i)
    named[nb::handle(PyTuple_GET_ITEM(call.keywords, i))] =
        nb::handle(call.arguments[call.count + static_cast<size_t>(i)]);
  return nb::module_::import_("epona.argument_errors")
      .attr("explain")(nb::handle(call.function), called, positional, named, text);
}

void explain(const Call& call) {
  nb::python_error error;  // takes over what was raised
  try {
    nb::str text{error.value()};
    if (std::strstr(text.c_str(), "incompatible function arguments")) {
      nb::object better = explanation(call, text);
      if (!better.is_none()) {
        PyErr_SetObject(PyExc_TypeError, better.ptr());
        return;
      }
    }
  } catch (nb::python_error&) {
    // Nothing better to say.
  }
  error.restore();
}

constexpr size_t kMost = 8;
constexpr size_t kCount = 0xffffff;             // the bits above are flags, Python's and nanobind's
std::array<vectorcallfunc, kMost> originals{};  // the module's functions share a few entry points

template <size_t kIndex>
PyObject* thunk(PyObject* function, PyObject* const* arguments, size_t flags, PyObject* keywords) {
  PyObject* result = originals[kIndex](function, arguments, flags, keywords);
  if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) explain({function, arguments, flags & kCount, keywords});
  return result;
}

template <size_t... kIndices>
constexpr std::array<vectorcallfunc, kMost> make_thunks(std::index_sequence<kIndices...>) {
  return {thunk<kIndices>...};
}

constexpr auto kThunks = make_thunks(std::make_index_sequence<kMost>());

void wrap(PyObject* function, const std::string& name) {
  PyTypeObject* type = Py_TYPE(function);
  if (std::strncmp(type->tp_name, "nanobind.", 9) != 0 && std::strncmp(type->tp_name, "nb_", 3) != 0) return;
  if (!PyType_HasFeature(type, Py_TPFLAGS_HAVE_VECTORCALL) || type->tp_vectorcall_offset <= 0) return;
  auto* entry = reinterpret_cast<vectorcallfunc*>(reinterpret_cast<char*>(function) + type->tp_vectorcall_offset);
  for (vectorcallfunc known : kThunks)
    if (*entry == known) return;
  for (size_t i = 0; i < kMost; ++i) {
    if (originals[i] && originals[i] != *entry) continue;
    originals[i] = *entry;
    *entry = kThunks[i];
    names().emplace(function, name);
    return;
  }
}

}  // namespace

void explain_argument_errors(nb::module_& m) {
  auto members = [](nb::handle owner) {
    return nb::cast<nb::dict>(nb::module_::import_("builtins").attr("dict")(owner.attr("__dict__")));
  };
  for (auto [key, value] : members(m)) {
    std::string name = nb::cast<std::string>(key);
    wrap(value.ptr(), name);
    if (!PyType_Check(value.ptr()) || !nb::hasattr(value, "__dict__")) continue;
    for (auto [inner_key, member] : members(value)) {
      std::string full = name + "." + nb::cast<std::string>(inner_key);
      wrap(member.ptr(), full);
      if (Py_IS_TYPE(member.ptr(), &PyProperty_Type))
        for (const char* part : {"fget", "fset"}) wrap(nb::object(member.attr(part)).ptr(), full);
    }
  }
}

}  // namespace epona::python
