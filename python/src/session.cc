#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "binding.h"
#include "kernels/isa.h"
#include "run/interrupter.h"

namespace epona::python {
namespace {

nb::list shape_list(const Type& type) {
  nb::list dims;
  if (!type.shape) return dims;
  for (const Dim& dim : *type.shape) {
    if (dim.known())
      dims.append(dim.value);
    else if (dim.symbol.empty())
      dims.append(nb::none());
    else
      dims.append(dim.symbol);
  }
  return dims;
}

const Type& element_type(const Type& type) {
  return type.kind == Type::Kind::optional && type.inner ? *type.inner : type;
}

/// Keeps what the feeds of one run hold until the run is over.
struct Feeds {
  std::vector<RuntimeValue> values;
  explicit Feeds(const Session& session, nb::dict feed) {
    size_t inputs = session.inputs().size();
    values.resize(inputs + session.overridable_initializers().size());
    size_t used = 0;
    auto take = [&](size_t at, const IoInfo& info) {
      PyObject* object = PyDict_GetItemString(feed.ptr(), info.name.c_str());
      if (!object) return;
      ++used;
      if (object == Py_None && info.type.kind != Type::Kind::optional)
        fail(Code::fail, "Missing Input: ", info.name, ": None was given for an input that is not optional");
      values[at] = value_from_python(object, info.type, info.name);
    };
    for (size_t i = 0; i < inputs; ++i) take(i, session.inputs()[i]);
    for (size_t i = inputs; i < values.size(); ++i) take(i, session.overridable_initializers()[i - inputs]);
    if (used < inputs || used != feed.size()) report_missing(session, feed);
    if (used != feed.size()) report_unknown(session, feed);
  }

 private:
  static bool known(const Session& session, const std::string& name) {
    for (const auto* list : {&session.inputs(), &session.overridable_initializers()})
      for (const IoInfo& info : *list)
        if (info.name == name) return true;
    return false;
  }
  static std::string names(const std::vector<IoInfo>& list) {
    std::string text;
    for (const IoInfo& info : list) text += (text.empty() ? "'" : ", '") + info.name + "'";
    return text;
  }
  static void report_unknown(const Session& session, nb::dict feed) {
    for (auto [key, value] : feed) {
      std::string name = nb::cast<std::string>(nb::str(key));
      if (!known(session, name))
        fail(Code::invalid_argument, "Invalid input name: ", name,
             ". The model's inputs are: ", names(session.inputs()));
    }
  }
  static void report_missing(const Session& session, nb::dict feed) {
    std::string missing, given;
    for (const IoInfo& info : session.inputs())
      if (info.type.kind != Type::Kind::optional && !PyDict_GetItemString(feed.ptr(), info.name.c_str()))
        missing += (missing.empty() ? "'" : ", '") + info.name + "'";
    for (auto [key, value] : feed) given += (given.empty() ? "'" : ", '") + nb::cast<std::string>(nb::str(key)) + "'";
    if (!missing.empty())
      throw nb::value_error(
          cat("Required inputs ([", missing, "]) are missing from input feed ([", given, "]).").c_str());
  }
};

std::vector<size_t> output_positions(const Session& session, const std::optional<std::vector<std::string>>& wanted) {
  std::vector<size_t> positions;
  const auto& outputs = session.outputs();
  if (!wanted || wanted->empty()) {
    for (size_t i = 0; i < outputs.size(); ++i) positions.push_back(i);
    return positions;
  }
  for (const std::string& name : *wanted) {
    size_t at = 0;
    while (at < outputs.size() && outputs[at].name != name) ++at;
    if (at == outputs.size()) {
      std::string known;
      for (const IoInfo& info : outputs) known += (known.empty() ? "'" : ", '") + info.name + "'";
      fail(Code::invalid_argument, "Invalid output name:", name, ". The model's outputs are: ", known);
    }
    positions.push_back(at);
  }
  return positions;
}

/// Handles signals while a run on the main thread goes on.
class SignalPoll final : public Interrupter {
 public:
  const std::optional<nb::python_error>& raised() const { return raised_; }

 private:
  void poll() override {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) return;
    raised_.emplace();
    fail(Code::fail, "Exiting due to terminate flag being set to true.");
  }

  std::optional<nb::python_error> raised_;
};

unsigned long main_thread = 0;

/// (type, index) of each; None for the host's memory.
nb::list device_names(const std::vector<std::shared_ptr<Device>>& devices) {
  nb::list names;
  for (const auto& device : devices)
    names.append(device ? nb::object(nb::make_tuple(device->type(), device->id())) : nb::object(nb::none()));
  return names;
}

std::vector<RuntimeValue> execute(const Session& session, const Feeds& feeds, const RunOptions* options,
                                  std::vector<RuntimeValue> results = {}) {
  results.resize(session.outputs().size());
  auto before = session.executable();
  run_without_gil(session, feeds.values, results, options);
  warn_of_left_providers(session, *before);
  return results;
}

}  // namespace

void run_without_gil(const Session& session, std::span<const RuntimeValue> values, std::span<RuntimeValue> results,
                     const RunOptions* options) {
  if (PyThread_get_thread_ident() != main_thread) {  // where Python handles no signals
    nb::gil_scoped_release release;
    return session.run_positional(values, results, options);
  }
  SignalPoll poll;
  try {
    nb::gil_scoped_release release;
    session.run_positional(values, results, options, nullptr, &poll);
  } catch (const Error&) {
    if (poll.raised()) throw nb::python_error(*poll.raised());
    throw;
  }
}

void bind_session(nb::module_& m) {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
  nb::class_<IoInfo>(m, "NodeArg", "Name, type and shape of an input or output.")
      .def_ro("name", &IoInfo::name)
      .def_prop_ro("type", [](const IoInfo& info) { return info.type.to_string(); })
      .def_prop_ro("shape", [](const IoInfo& info) { return shape_list(element_type(info.type)); })
      .def("__eq__",
           [](const IoInfo& a, nb::handle other) {
             const IoInfo* b = nullptr;
             return nb::try_cast(other, b) && b && a.name == b->name && a.type.to_string() == b->type.to_string() &&
                    shape_list(element_type(a.type)).equal(shape_list(element_type(b->type)));
           })
      .def("__hash__", [](const IoInfo& info) { return nb::hash(nb::cast(info.name)); })
      .def("__repr__", [](const IoInfo& info) {  // str() falls back to it
        return cat("NodeArg(name='", info.name, "', type='", info.type.to_string(),
                   "', shape=", nb::cast<std::string>(nb::str(shape_list(element_type(info.type)))), ")");
      });

  nb::class_<Model>(m, "ModelMetadata", "What a model says about itself.")
      .def_ro("producer_name", &Model::producer_name)
      .def_ro("version", &Model::model_version)
      .def_ro("domain", &Model::domain)
      .def_ro("description", &Model::description)
      .def_ro("graph_description", &Model::graph_description)
      .def_ro("custom_metadata_map", &Model::metadata)
      .def_prop_ro("graph_name", [](const Model& model) { return model.graph_name; });

  nb::class_<Session>(m, "Session")
      .def(
          "__init__",
          [](Session* self, const std::string& path, const SessionOptions& options) {
            nb::gil_scoped_release release;
            new (self) Session(std::filesystem::path(path), options);
          },
          nb::arg("path"), nb::arg("options"))
      .def(
          "__init__",
          [](Session* self, nb::bytes bytes, const SessionOptions& options) {
            std::span<const std::byte> view(reinterpret_cast<const std::byte*>(bytes.c_str()), bytes.size());
            // bytes never change, and the InferenceSession keeps them anyway: weights stay views into them.
            auto owner = std::shared_ptr<void>(bytes.inc_ref().ptr(), [](void* object) {
              if (!Py_IsInitialized()) return;
              nb::gil_scoped_acquire held;
              Py_DECREF(static_cast<PyObject*>(object));
            });
            nb::gil_scoped_release release;
            new (self) Session(view, std::move(owner), options);
          },
          nb::arg("bytes"), nb::arg("options"))
      .def_prop_ro("inputs_meta", [](const Session& s) { return s.inputs(); })
      .def_prop_ro("outputs_meta", [](const Session& s) { return s.outputs(); })
      .def_prop_ro("overridable_initializers", [](const Session& s) { return s.overridable_initializers(); })
      .def_prop_ro(
          "model_meta", [](const Session& s) -> const Model& { return s.model(); }, nb::rv_policy::reference_internal)
      .def("get_providers", &Session::providers)
      .def("provider_options", &Session::provider_options)
      .def(
          "set_providers",
          [](Session& s, const std::vector<std::pair<std::string, OptionMap>>& requests) {
            std::vector<ProviderRequest> list;
            list.reserve(requests.size());
            for (auto& [name, options] : requests) list.push_back({name, options});
            nb::gil_scoped_release release;
            s.set_providers(std::move(list));
          },
          nb::arg("requests"))
      .def("set_dynamic_options", &Session::set_dynamic_options, nb::arg("options"),
           nb::call_guard<nb::gil_scoped_release>())
      .def("allow_run_fallback", &Session::allow_run_fallback, nb::arg("on"))
      .def("inactive_providers",
           [](const Session& s) {
             nb::list list;
             auto executable = s.executable();
             for (const InactiveProvider& one : executable->placement.inactive)
               list.append(nb::make_tuple(one.provider, one.stage, one.cause, one.fix));
             return list;
           })
      .def("has_config",
           [](const Session& s, const std::string& key, const std::string& value) {
             auto it = s.options().config.find(key);
             return it != s.options().config.end() && it->second == value;
           })
      .def("end_profiling", &Session::end_profiling)
      .def_prop_ro("get_profiling_start_time_ns",
                   [](const Session& s) { return s.profiler() ? s.profiler()->start_time_ns() : uint64_t{0}; })
      .def("input_devices", [](const Session& s) { return device_names(s.input_devices()); })
      .def("output_devices", [](const Session& s) { return device_names(s.output_devices()); })
      .def("creation_times", [](const Session& s) { return s.creation_times(); })
      .def("passes",
           [](const Session& s) {
             nb::list list;
             for (const PassRecord& pass : s.passes())
               list.append(nb::make_tuple(pass.name, pass.rewrites, pass.milliseconds));
             return list;
           })
      .def("placement_json", [](const Session& s) { return to_json(s.placement_report()); })
      .def("placement_html", [](const Session& s) { return to_html(s.placement_report()); })
      .def(
          "placement_table", [](const Session& s, size_t rows) { return to_table(s.placement_report(), rows); },
          nb::arg("rows"))
      .def(
          "run",
          [](const Session& s, const std::optional<std::vector<std::string>>& wanted, nb::dict feed,
             const RunOptions* options) {
            auto positions = output_positions(s, wanted);
            Feeds feeds(s, feed);
            auto results = execute(s, feeds, options);
            nb::list list;
            for (size_t at : positions) list.append(value_to_python(results[at]));
            return list;
          },
          nb::arg("output_names").none(), nb::arg("input_feed"), nb::arg("run_options").none() = nb::none())
      .def(
          "run_with_ort_values",
          [](const Session& s, nb::dict feed, const std::optional<std::vector<std::string>>& wanted,
             const RunOptions* options, const std::optional<std::vector<nb::object>>& devices) {
            auto positions = output_positions(s, wanted);
            Feeds feeds(s, feed);
            std::vector<RuntimeValue> results(s.outputs().size());
            for (size_t i = 0; devices && i < std::min(devices->size(), positions.size()); ++i)
              if (auto device = device_from_python((*devices)[i])) results[positions[i]] = Tensor::wanted_on(*device);
            results = execute(s, feeds, options, std::move(results));
            std::vector<RuntimeValue> chosen;
            chosen.reserve(positions.size());
            for (size_t at : positions) chosen.push_back(results[at]);
            return chosen;
          },
          nb::arg("input_feed"), nb::arg("output_names").none(), nb::arg("run_options").none() = nb::none(),
          nb::arg("devices").none() = nb::none());

  m.def("isa", [] { return std::string(isa_name()); }, "The instruction-set tier in use.");
  m.def(
      "available_isas",
      [] {
        std::vector<std::string> names;
        for (const char* name : available_isas()) names.emplace_back(name);
        return names;
      },
      "The instruction-set tiers this CPU has; EPONA_ISA forces one.");
}

}  // namespace epona::python
