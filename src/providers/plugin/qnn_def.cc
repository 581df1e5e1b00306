#include <algorithm>

#include "providers/vendor_files.h"

namespace epona {
namespace {

using enum OptionType;

constexpr const char* kPerformanceModes =
    "default|burst|balanced|high_performance|high_power_saver|low_balanced|extreme_power_saver|low_power_saver|power_"
    "saver|"
    "sustained_high_performance";

constexpr OptionSpec kOptions[] = {
    {"backend_type", choice, "htp", "htp|cpu|gpu|saver|ir", "the QNN backend; not together with backend_path"},
    {"backend_path", path, "", "", "library of the backend: libQnnHtp.so, QnnHtp.dll"},
    {"device_id", integer, "0", "0..63", "the device that htp_arch is set for"},
    {"profiling_level", choice, "off", "off|basic|detailed|optrace", "what QNN measures"},
    {"profiling_file_path", path, "", "", "file (CSV) for what it measured"},
    {"rpc_control_latency", integer, "0", "0..", "latency of calls to the DSP to aim at, in microseconds; 0: not set"},
    {"vtcm_mb", integer, "0", "0..", "tightly coupled memory to use, in MB; 0: not set"},
    {"htp_performance_mode", choice, "default", kPerformanceModes, "clock and power of the HTP", true},
    {"qnn_saver_path", path, "", "", "library of the Saver backend, which writes all QNN calls to a file"},
    {"qnn_context_priority", choice, "normal", "low|normal|normal_high|high", "priority among contexts of the HTP"},
    {"htp_graph_finalization_optimization_mode", integer, "0", "0..3",
     "how long preparing a graph may take: 3 is longest"},
    {"soc_model", text, "0", "", "number of the SoC model; 0: unknown"},
    {"htp_arch", text, "0", "", "architecture of the HTP: 68, 69, 73, 75, 79, 81; 0: not set"},
    {"enable_htp_fp16_precision", boolean, "1", "", "compute float models in float16"},
    {"offload_graph_io_quantization", boolean, "1", "", "leave quantisation at the graph's edges to the next provider"},
    {"enable_htp_spill_fill_buffer", boolean, "0", "", "share the spill buffer among contexts"},
    {"enable_htp_shared_memory_allocator", boolean, "0", "", "let inputs and outputs lie in memory that the HTP sees"},
    {"enable_htp_weight_sharing", boolean, "0", "", "share weights between graphs of one context"},
    {"dump_json_qnn_graph", boolean, "0", "", "write every QNN graph as JSON"},
    {"json_qnn_graph_dir", path, "", "", "folder for them"},
    {"dump_qnn_ir_dlc", boolean, "0", "", "write every graph as a DLC file"},
    {"dump_qnn_ir_dlc_dir", path, "", "", "folder for them"},
    {"op_packages", text, "", "", "packages of user operators: type:path:interface[:target],..."},
    {"skip_qnn_version_check", boolean, "0", "", "accept another QNN version than the provider was built for"},
    {"extended_udma", boolean, "0", "", "use extended DMA (HTP 81 and newer)"},
    {"workload_type", choice, "Default", "Default|Efficient", "trade speed for power while the session lives", true},
};

OptionSchema schema() { return kOptions; }

Probe probe(const OptionValues*) {
  Probe probe;
  probe.version = package_version("onnxruntime-qnn");
  bool found = !probe.version.empty();
  probe.findings.push_back({"package onnxruntime-qnn", found ? probe.version : "not installed",
                            "Qualcomm's plugin provider, 2.0 or newer", found ? "" : "pip install onnxruntime-qnn",
                            found});
  probe.available = found;
  return probe;
}

}  // namespace

const ProviderDef& qnn_provider_def() {
  static const ProviderDef def{"QNNExecutionProvider", "Qualcomm NPUs", schema, probe, nullptr};
  return def;
}

}  // namespace epona
