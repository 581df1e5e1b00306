#include "providers/registry.h"

namespace epona {
namespace {

OptionSchema schema() { return {}; }

Probe probe(const OptionValues*) { return {}; }

}  // namespace

const ProviderDef& tensorrt_provider_def() {
  static const ProviderDef def{"TensorrtExecutionProvider", "NVIDIA GPUs, whole graphs compiled by TensorRT", schema, probe, nullptr};
  return def;
}

}  // namespace epona
