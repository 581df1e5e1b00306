#include "providers/registry.h"

namespace epona {
namespace {

OptionSchema schema() { return {}; }

Probe probe(const OptionValues*) { return {}; }

}  // namespace

const ProviderDef& directml_provider_def() {
  static const ProviderDef def{"DmlExecutionProvider", "any Direct3D 12 GPU on Windows", schema, probe, nullptr};
  return def;
}

}  // namespace epona
