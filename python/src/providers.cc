#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "binding.h"
#include "kernels/isa.h"
#include "providers/doctor.h"
#include "providers/vendor_files.h"
#include "session/choose_providers.h"

namespace epona::python {
namespace {

nb::dict probe_record(const ProviderDef& def, const Probe& probe) {
  nb::dict record;
  record["name"] = def.name;
  record["summary"] = def.summary;
  record["available"] = probe.available;
  record["version"] = probe.version;
  record["cause"] = probe.cause();
  record["fix"] = probe.fix();
  nb::list findings;
  for (const Finding& finding : probe.findings) {
    nb::dict one;
    one["what"] = finding.what;
    one["found"] = finding.found;
    one["needed"] = finding.needed;
    one["fix"] = finding.fix;
    one["ok"] = finding.ok;
    findings.append(one);
  }
  record["findings"] = findings;
  return record;
}

const ProviderDef& known(const std::string& name) {
  const ProviderDef* def = find_provider(name);
  if (!def) throw std::runtime_error(cat("Unknown Provider Type: ", name, ".", suggest_provider(name)));
  return *def;
}

}  // namespace

void warn_of_left_providers(const Session& session, const Executable& before) {
  auto now = session.executable();
  if (now.get() == &before || fallback_policy(session.options()) != FallbackPolicy::warn) return;
  for (size_t i = before.placement.inactive.size(); i < now->placement.inactive.size(); ++i) {
    const InactiveProvider& left = now->placement.inactive[i];
    if (left.stage != "run") continue;
    std::string text = cat("Provider '", left.provider, "' failed while running and was left; the run was repeated on ",
                           now->providers.front().def->name, ". Cause: ", left.cause);
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 2) != 0) throw nb::python_error();
  }
}

void bind_providers(nb::module_& m) {
  m.def("_set_package_folders", &set_package_folders, nb::arg("folders"));
  m.def(
      "get_all_providers",
      [] {
        std::vector<std::string> names;
        for (const ProviderDef* def : all_providers()) names.emplace_back(def->name);
        return names;
      },
      "Every provider name that Epona knows, in order of preference.");
  m.def(
      "get_available_providers",
      [] {
        std::vector<std::string> names;
        for (const ProviderDef* def : all_providers())
          if (def->make && probe_provider(*def).available) names.emplace_back(def->name);
        return names;
      },
      "The providers that can run here, in order of preference.");
  m.def(
      "provider_is_known",
      [](const std::string& name) { return find_provider(name) != nullptr || is_foreign_provider(name); },
      nb::arg("name"));
  m.def("suggest_provider", [](const std::string& name) { return suggest_provider(name); }, nb::arg("name"));
  m.def(
      "probe_provider",
      [](const std::string& name) {
        const ProviderDef& def = known(name);
        return probe_record(def, probe_provider(def));
      },
      nb::arg("name"), "What a provider needs and what is there.");
  m.def(
      "check_provider_options",
      [](const std::string& name, const OptionMap& options) {
        const ProviderDef& def = known(name);
        return OptionValues(name, def.schema(), options).all();
      },
      nb::arg("name"), nb::arg("options"), "Every effective option of a provider; an error for a wrong key or value.");
  m.def("doctor_table", [] { return to_table(diagnose()); });
  m.def("doctor_json", [] { return to_json(diagnose()); });
  m.def("provider_schema_json", [](const std::string& name) { return schema_json(known(name)); }, nb::arg("name"));
  m.def("provider_document", &schema_document);
}

}  // namespace epona::python
