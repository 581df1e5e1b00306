#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

#include "base/log.h"
#include "base/process_settings.h"
#include "binding.h"
#include "passes/pass_names.h"
#include "session/config_keys.h"

namespace epona::python {
namespace {

enum class ExecutionMode { ORT_SEQUENTIAL = 0, ORT_PARALLEL = 1 };
enum class ExecutionOrder { DEFAULT = 0, PRIORITY_BASED = 1, MEMORY_EFFICIENT = 2 };

void check_key(const std::string& key, const std::string& value) {
  if (key.empty() || key.size() > 1024)
    throw std::runtime_error("Config key is empty or longer than maximum length 1024");
  if (value.size() > 8192) throw std::runtime_error("Config value is longer than maximum length 8192");
}

int64_t checked_dim(const std::string& name, int64_t value) {
  if (value < 0) throw std::runtime_error(cat("the free dimension '", name, "' cannot be ", value));
  return value;
}

std::string config_entry(const std::map<std::string, std::string>& config, const std::string& key, const char* owner) {
  auto it = config.find(key);
  if (it == config.end()) throw std::runtime_error(cat(owner, " does not have configuration with key: ", key));
  return it->second;
}

}  // namespace

void bind_options(nb::module_& m) {
  nb::enum_<OptLevel>(m, "GraphOptimizationLevel", nb::is_arithmetic())
      .value("ORT_DISABLE_ALL", OptLevel::none)
      .value("ORT_ENABLE_BASIC", OptLevel::basic)
      .value("ORT_ENABLE_EXTENDED", OptLevel::extended)
      .value("ORT_ENABLE_LAYOUT", OptLevel::layout)
      .value("ORT_ENABLE_ALL", OptLevel::all);
  nb::enum_<ExecutionMode>(m, "ExecutionMode", nb::is_arithmetic())
      .value("ORT_SEQUENTIAL", ExecutionMode::ORT_SEQUENTIAL)
      .value("ORT_PARALLEL", ExecutionMode::ORT_PARALLEL);
  nb::enum_<ExecutionOrder>(m, "ExecutionOrder", nb::is_arithmetic())
      .value("DEFAULT", ExecutionOrder::DEFAULT)
      .value("PRIORITY_BASED", ExecutionOrder::PRIORITY_BASED)
      .value("MEMORY_EFFICIENT", ExecutionOrder::MEMORY_EFFICIENT);

  using S = SessionOptions;
  nb::class_<S>(m, "SessionOptions", nb::is_weak_referenceable(),
                "Everything that can be set before a session is made.")
      .def(nb::init<>())
      .def_rw("graph_optimization_level", &S::optimization_level)
      .def_rw("intra_op_num_threads", &S::intra_op_threads)
      .def_rw("inter_op_num_threads", &S::inter_op_threads)
      .def_prop_rw(
          "execution_mode",
          [](const S& s) { return s.parallel_execution ? ExecutionMode::ORT_PARALLEL : ExecutionMode::ORT_SEQUENTIAL; },
          [](S& s, ExecutionMode mode) { s.parallel_execution = mode == ExecutionMode::ORT_PARALLEL; })
      .def_prop_rw(
          "execution_order",
          [](const S& s) {
            auto it = s.config.find("epona.execution_order");
            return it == s.config.end() ? ExecutionOrder::DEFAULT : static_cast<ExecutionOrder>(it->second[0] - '0');
          },
          [](S& s, ExecutionOrder order) {
            s.config["epona.execution_order"] = std::to_string(static_cast<int>(order));
          },
          "Nodes run in the order of the plan; the setting is kept.")
      .def_prop_rw(
          "use_per_session_threads", [](const S& s) { return !s.config.contains("epona.global_threads"); },
          [](S& s, bool on) {
            if (on)
              s.config.erase("epona.global_threads");
            else
              s.config["epona.global_threads"] = "1";
          })
      .def_rw("enable_cpu_mem_arena", &S::enable_cpu_mem_arena)
      .def_rw("enable_mem_pattern", &S::enable_mem_pattern)
      .def_rw("enable_mem_reuse", &S::enable_mem_reuse)
      .def_rw("enable_profiling", &S::enable_profiling)
      .def_rw("profile_file_prefix", &S::profile_file_prefix)
      .def_rw("optimized_model_filepath", &S::optimized_model_path)
      .def_rw("logid", &S::log_id)
      .def_rw("log_severity_level", &S::log_severity)
      .def_rw("log_verbosity_level", &S::log_verbosity)
      .def_prop_rw(
          "use_deterministic_compute", [](const S& s) { return s.config.contains("epona.deterministic"); },
          [](S& s, bool on) {
            if (on)
              s.config["epona.deterministic"] = "1";
            else
              s.config.erase("epona.deterministic");
          })
      .def(
          "add_session_config_entry",
          [](S& s, const std::string& key, const std::string& value) { set_config(s, key, value); }, nb::arg("key"),
          nb::arg("value"), "Sets a configuration entry.")
      .def(
          "add_initializer",
          [](S& s, const std::string& name, nb::handle value) {
            RuntimeValue* given = as_ort_value(value);
            if (!given || given->kind != RuntimeValue::Kind::tensor)
              throw std::runtime_error(cat("add_initializer: '", name, "' needs an OrtValue that holds a tensor"));
            s.initializers[name] = given->tensor.in_memory_of(nullptr);
          },
          nb::arg("name"), nb::arg("ort_value"), "Takes a value in the place of the model's initialiser of that name.")
      .def(
          "_add_file",
          [](S& s, const std::string& name, nb::handle bytes) { s.files[name] = tensor_from_array(bytes); },
          nb::arg("name"), nb::arg("bytes"))
      .def(
          "get_session_config_entry",
          [](const S& s, const std::string& key) {
            check_key(key, "");
            return config_entry(s.config, key, "SessionOptions");
          },
          nb::arg("key"), "The value of a configuration entry; RuntimeError when it is not set.")
      .def(
          "add_free_dimension_override_by_name",
          [](S& s, const std::string& name, int64_t value) { s.dim_by_symbol[name] = checked_dim(name, value); },
          nb::arg("name"), nb::arg("value"), "Fixes a symbolic dimension of the inputs by its name.")
      .def(
          "add_free_dimension_override_by_denotation",
          [](S& s, const std::string& name, int64_t value) { s.dim_by_denotation[name] = checked_dim(name, value); },
          nb::arg("denotation"), nb::arg("value"), "Fixes a symbolic dimension of the inputs by its denotation.")
      .def(
          "add_provider",
          [](S& s, const std::string& name, const std::map<std::string, std::string>& options) {
            s.providers.push_back({name, options});
          },
          nb::arg("name"), nb::arg("options"))
      .def(
          "set_load_cancellation_flag", [](S& s, bool cancel) { *s.cancel_load = cancel; }, nb::arg("is_cancel"),
          "While set, by any thread, sessions that are being made with these options stop with ModelLoadCanceled.")
      .def("config_or",
           [](const S& s, const std::string& key, const std::string& otherwise) {
             auto it = s.config.find(key);
             return it == s.config.end() ? otherwise : it->second;
           })
      .def("has_providers", [](const S& s) { return !s.providers.empty(); })
      .def("has_config",
           [](const S& s, const std::string& key, const std::string& value) {
             auto it = s.config.find(key);
             return it != s.config.end() && it->second == value;
           })
      .def("has_config_key", [](const S& s, const std::string& key) { return s.config.contains(key); })
      .def("config_value", [](const S& s, const std::string& key,
                              const std::string& otherwise) { return config_value(s, key, otherwise); })
      .def("_clone", [](const S& s) { return S(s); })
      .def("_clear_providers", [](S& s) { s.providers.clear(); })
      .def("_disable_pass", [](S& s, const std::string& name) {
        std::string pass = find_pass(name);
        if (!pass.empty())
          s.disabled_passes.insert(pass);
        else if (PyErr_WarnEx(PyExc_UserWarning, cat("disabled_optimizers: ", unknown_pass(name)).c_str(), 2) != 0)
          throw nb::python_error();
      });

  using R = RunOptions;
  nb::class_<R>(m, "RunOptions", nb::is_weak_referenceable(), "Options of one run.")
      .def(nb::init<>())
      .def_prop_rw(
          "terminate", [](const R& r) { return r.terminate.load(); }, [](R& r, bool on) { r.terminate = on; })
      .def_rw("logid", &R::tag)
      .def_prop_rw(
          "tag", [](const R& r) { return r.tag; }, [](R& r, const std::string& tag) { r.tag = tag; })
      .def_rw("log_severity_level", &R::log_severity)
      .def_rw("log_verbosity_level", &R::log_verbosity)
      .def_prop_rw(
          "only_execute_path_to_fetches", [](const R& r) { return r.config.contains("only_execute_path_to_fetches"); },
          [](R& r, bool on) {
            if (on)
              r.config["only_execute_path_to_fetches"] = "1";
            else
              r.config.erase("only_execute_path_to_fetches");
          })
      .def(
          "add_run_config_entry",
          [](R& r, const std::string& key, const std::string& value) {
            check_key(key, value);
            std::string hint;
            if (!known_run_config_key(key, hint) && PyErr_WarnEx(PyExc_UserWarning, hint.c_str(), 1))
              throw nb::python_error();
            r.config[key] = value;
          },
          nb::arg("key"), nb::arg("value"), "Sets a configuration entry of the run.")
      .def(
          "get_run_config_entry",
          [](const R& r, const std::string& key) { return config_entry(r.config, key, "RunOptions"); }, nb::arg("key"));

  m.def(
      "_set_log_callback",
      [](nb::object callback) {
        if (callback.is_none()) return set_log_sink({});
        // Not dropped when another takes its place: a thread may be about to call it.
        auto* kept = new nb::object(std::move(callback));
        set_log_sink([kept](Severity severity, std::string_view id, std::string_view message) {
          if (!Py_IsInitialized()) return;
          nb::gil_scoped_acquire gil;
          try {
            (*kept)(static_cast<int>(severity), "epona", std::string(id), "", std::string(message));
          } catch (nb::python_error& error) {
            error.discard_as_unraisable("epona's log callback");
          }
        });
      },
      nb::arg("callback").none());
  m.def("set_seed", &set_process_seed, nb::arg("seed"), "Sets the seed of random operators whose node has none.");
  m.def("_set_default_threads", &set_default_threads, nb::arg("threads"));
  m.def(
      "set_default_logger_severity",
      [](int severity) {
        if (severity < 0 || severity > 4)
          throw std::runtime_error("Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal");
        set_default_severity(static_cast<Severity>(severity));
      },
      nb::arg("severity"), "Sets the process-wide log threshold: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.");
}

}  // namespace epona::python
