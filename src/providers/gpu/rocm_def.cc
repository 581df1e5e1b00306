#include <algorithm>
#include <filesystem>

#include "providers/gpu/cuda_options.h"
#include "providers/vendor_files.h"

namespace epona {
namespace {

constexpr const char* kRocmFix = "install ROCm 6 or newer (https://rocm.docs.amd.com)";

/// GPUs that the kernel driver knows: topology nodes with a graphics target. CPUs are nodes without one.
int count_devices() {
  int count = 0;
  std::error_code error;
  for (const auto& node : std::filesystem::directory_iterator("/sys/class/kfd/kfd/topology/nodes", error)) {
    std::string id = first_line(node.path() / "gpu_id");
    count += !id.empty() && id != "0";
  }
  return count;
}

Probe probe(const OptionValues* options) {
  Probe probe;
  auto add = [&](Finding finding) { probe.findings.push_back(std::move(finding)); };
  int64_t device = options ? options->integer("device_id") : 0;
  add(platform_finding("Linux"));
  std::error_code error;
  bool driver = std::filesystem::exists("/dev/kfd", error);
  add({"driver", driver ? "/dev/kfd" : "no /dev/kfd", "the amdgpu kernel driver",
       driver ? ""
              : "load the driver (modprobe amdgpu); in a container: run it with --device /dev/kfd --device /dev/dri",
       driver});
  int devices = count_devices();
  bool ok = device < devices;
  add({"device", devices == 0 ? "no AMD GPU" : cat(devices, " AMD GPU(s)"), cat("an AMD GPU numbered ", device),
       ok             ? ""
       : devices == 0 ? "use a machine with an AMD GPU"
                      : cat("set device_id to at most ", devices - 1),
       ok});
  add(library_finding("libamdhip64", {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"}, {},
                      "HIP 5 or newer", kRocmFix));
  add(library_finding("libhiprtc", {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so"}, {},
                      "hipRTC 5 or newer", kRocmFix));
  // Own kernels stand in where these are missing: slower, not impossible.
  for (const char* name : {"libhipblaslt.so", "libMIOpen.so"}) {
    Finding finding = library_finding(name, {name, cat(name, ".0"), cat(name, ".1")}, {}, "optional", "");
    finding.ok = true;
    add(std::move(finding));
  }
  probe.available = std::all_of(probe.findings.begin(), probe.findings.end(), [](const Finding& f) { return f.ok; });
  return probe;
}

}  // namespace

const ProviderDef& rocm_provider_def() {
  static const ProviderDef def{"ROCMExecutionProvider", "AMD GPUs", rocm_options, probe, nullptr};
  return def;
}

}  // namespace epona
