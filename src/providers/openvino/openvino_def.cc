#include "providers/registry.h"

namespace epona {
namespace {

OptionSchema schema() { return {}; }

Probe probe(const OptionValues*) { return {}; }

}  // namespace

const ProviderDef& openvino_provider_def() {
  static const ProviderDef def{"OpenVINOExecutionProvider", "CPUs, GPUs and NPUs through OpenVINO", schema, probe, nullptr};
  return def;
}

}  // namespace epona
