#include "providers/vendor_files.h"

namespace epona {
namespace {

using enum OptionType;

constexpr OptionSpec kOptions[] = {
    {"ModelFormat", choice, "MLProgram", "MLProgram|NeuralNetwork", "the kind of Core ML model that is made"},
    {"MLComputeUnits", choice, "ALL", "ALL|CPUOnly|CPUAndGPU|CPUAndNeuralEngine", "what Core ML may run on"},
    {"RequireStaticInputShapes", boolean, "0", "", "take only nodes whose inputs have fixed shapes"},
    {"EnableOnSubgraphs", boolean, "0", "", "also take nodes inside the bodies of If, Loop and Scan"},
    {"SpecializationStrategy", choice, "Default", "Default|FastPrediction",
     "Core ML's own trade between load time and prediction time"},
    {"ProfileComputePlan", boolean, "0", "", "log the device and the cost that Core ML plans for every operation"},
    {"AllowLowPrecisionAccumulationOnGPU", boolean, "0", "", "add up in float16 on the GPU"},
    {"ModelCacheDirectory", path, "", "", "folder in which compiled models are kept; empty: none are"},
};

OptionSchema schema() { return kOptions; }

Probe probe(const OptionValues*) {
  Probe probe;
  probe.findings.push_back(platform_finding("Darwin"));
  probe.available = probe.findings[0].ok;
  return probe;
}

}  // namespace

const ProviderDef& coreml_provider_def() {
  static const ProviderDef def{"CoreMLExecutionProvider", "Apple CPUs, GPUs and neural engines", schema, probe,
                               nullptr};
  return def;
}

}  // namespace epona
