#include <algorithm>

#include "providers/gpu/nvidia_driver.h"
#include "providers/tensorrt/tensorrt_options.h"
#include "providers/vendor_files.h"

namespace epona {
namespace {

Probe probe(const OptionValues* options) {
  Probe probe;
  probe.findings = nvidia_driver_findings(options ? options->integer("device_id") : 0);
  probe.findings.push_back(
      library_finding("libnvinfer or libtensorrt_rtx", {"libnvinfer.so.11", "libnvinfer.so.10", "libtensorrt_rtx.so.1"},
                      {"tensorrt_libs", "tensorrt_rtx_libs"}, "TensorRT 10 or 11, or TensorRT-RTX 1.5 or newer",
                      "pip install tensorrt-rtx-cu13-libs, or TensorRT from https://developer.nvidia.com/tensorrt"));
  probe.findings.push_back(library_finding(
      "ONNX parser", {"libnvonnxparser.so.11", "libnvonnxparser.so.10", "libtensorrt_onnxparser_rtx.so.1"},
      {"tensorrt_libs", "tensorrt_rtx_libs"}, "the parser of the same version",
      "pip install tensorrt-rtx-cu13-libs, or TensorRT from https://developer.nvidia.com/tensorrt"));
  probe.available = std::all_of(probe.findings.begin(), probe.findings.end(), [](const Finding& f) { return f.ok; });
  return probe;
}

}  // namespace

const ProviderDef& tensorrt_provider_def() {
  static const ProviderDef def{"TensorrtExecutionProvider", "NVIDIA GPUs, whole graphs compiled by TensorRT",
                               tensorrt_options, probe, nullptr};
  return def;
}

}  // namespace epona
