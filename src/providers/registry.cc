#include "providers/registry.h"

#include <algorithm>

#include "base/nearest.h"
#include "providers/testing/test_def.h"

namespace epona {

std::string Probe::cause() const {
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.ok) continue;
    text += cat(text.empty() ? "" : "; ", finding.what, ": ", finding.found.empty() ? "not found" : finding.found);
    if (!finding.needed.empty()) text += cat(" (needed: ", finding.needed, ")");
  }
  return text;
}

std::string Probe::fix() const {
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.ok || finding.fix.empty() || text.find(finding.fix) != std::string::npos) continue;
    text += (text.empty() ? "" : "; ") + finding.fix;
  }
  return text;
}

const std::vector<const ProviderDef*>& all_providers() {
  static const std::vector<const ProviderDef*> list = {
      &tensorrt_provider_def(), &cuda_provider_def(),     &rocm_provider_def(), &openvino_provider_def(),
      &coreml_provider_def(),   &directml_provider_def(), &qnn_provider_def(),  &cpu_provider_def(),
  };
  return list;
}

const ProviderDef* find_provider(std::string_view name) {
  for (const ProviderDef* def : all_providers())
    if (name == def->name) return def;
  return find_test_provider(name);
}

Probe probe_provider(const ProviderDef& def, const OptionValues* options) {
  Probe probe;
  try {
    probe = def.probe(options);
  } catch (const std::exception& error) {
    probe.available = false;
    probe.findings.push_back({"probe", error.what(), "", "", false});
  }
  if (!def.make) {
    probe.available = false;
    probe.findings.insert(probe.findings.begin(),
                          {"this build", "does not contain the provider yet", "a later version of epona",
                           "pip install --upgrade epona, once a version with it is out", false});
  }
  return probe;
}

bool is_foreign_provider(std::string_view name) {
  static constexpr std::string_view kForeign[] = {
      "NvTensorRTRTXExecutionProvider", "MIGraphXExecutionProvider", "VitisAIExecutionProvider",
      "XnnpackExecutionProvider",       "NnapiExecutionProvider",    "AzureExecutionProvider",
      "DnnlExecutionProvider",          "CANNExecutionProvider",     "RknpuExecutionProvider",
      "ACLExecutionProvider",           "ArmNNExecutionProvider",    "TvmExecutionProvider",
      "WebGpuExecutionProvider",        "WebNNExecutionProvider",    "JsExecutionProvider",
      "VSINPUExecutionProvider",        "SNPEExecutionProvider"};
  return std::find(std::begin(kForeign), std::end(kForeign), name) != std::end(kForeign);
}

std::string suggest_provider(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ProviderDef* def : all_providers()) names.push_back(def->name);
  // "cuda", "CPU": what people call them without the ending.
  for (std::string_view known : names) {
    std::string_view stem = known.substr(0, known.find("ExecutionProvider"));
    if (nearest(name, {&stem, 1}) == stem && name.size() <= stem.size() + 2) return cat(" Did you mean '", known, "'?");
  }
  return did_you_mean(name, names);
}

}  // namespace epona
