#include "providers/vendor_files.h"

namespace epona {
namespace {

using enum OptionType;

constexpr OptionSpec kOptions[] = {
    {"device_id", integer, "-1", "-1..63", "the adapter, numbered as DXGI lists them; -1: by preference and filter",
     true},
    {"performance_preference", choice, "default", "default|high_performance|minimum_power",
     "which adapter is preferred when device_id does not say"},
    {"device_filter", choice, "gpu", "gpu|npu|any", "kinds of adapters to choose from"},
    {"disable_metacommands", boolean, "0", "", "do not use the driver's own versions of operators"},
    {"enable_graph_capture", boolean, "0", "", "record a run and replay it; needs fixed shapes and IO binding"},
    {"enable_graph_serialization", boolean, "0", "", "write the compiled graph to a file"},
    {"enable_dynamic_graph_fusion", boolean, "0", "", "compile again when shapes become known"},
    {"disable_memory_arena", boolean, "0", "", "give memory back to the system at once"},
};

OptionSchema schema() { return kOptions; }

Probe probe(const OptionValues*) {
  Probe probe;
  probe.findings.push_back(platform_finding("Windows"));
  probe.available = probe.findings[0].ok;
  return probe;
}

}  // namespace

const ProviderDef& directml_provider_def() {
  static const ProviderDef def{"DmlExecutionProvider", "any Direct3D 12 GPU on Windows", schema, probe, nullptr};
  return def;
}

}  // namespace epona
