#include "providers/registry.h"

namespace epona {
namespace {

OptionSchema schema() { return {}; }

Probe probe(const OptionValues*) { return {}; }

}  // namespace

const ProviderDef& rocm_provider_def() {
  static const ProviderDef def{"ROCMExecutionProvider", "AMD GPUs", schema, probe, nullptr};
  return def;
}

}  // namespace epona
