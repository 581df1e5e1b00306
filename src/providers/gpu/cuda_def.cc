#include "providers/registry.h"

namespace epona {
namespace {

OptionSchema schema() { return {}; }

Probe probe(const OptionValues*) { return {}; }

}  // namespace

const ProviderDef& cuda_provider_def() {
  static const ProviderDef def{"CUDAExecutionProvider", "NVIDIA GPUs", schema, probe, nullptr};
  return def;
}

}  // namespace epona
