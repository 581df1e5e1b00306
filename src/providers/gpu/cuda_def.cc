#include <algorithm>

#include "providers/gpu/cuda_options.h"
#include "providers/gpu/nvidia_driver.h"

namespace epona {
namespace {

Probe probe(const OptionValues* options) {
  Probe probe;
  probe.findings = nvidia_driver_findings(options ? options->integer("device_id") : 0);
  for (Finding& finding : cuda_library_findings()) probe.findings.push_back(std::move(finding));
  probe.available = std::all_of(probe.findings.begin(), probe.findings.end(), [](const Finding& f) { return f.ok; });
  return probe;
}

}  // namespace

const ProviderDef& cuda_provider_def() {
  static const ProviderDef def{"CUDAExecutionProvider", "NVIDIA GPUs", cuda_options, probe, nullptr};
  return def;
}

}  // namespace epona
