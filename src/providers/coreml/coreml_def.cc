#include "providers/registry.h"

namespace epona {
namespace {

OptionSchema schema() { return {}; }

Probe probe(const OptionValues*) { return {}; }

}  // namespace

const ProviderDef& coreml_provider_def() {
  static const ProviderDef def{"CoreMLExecutionProvider", "Apple CPUs, GPUs and neural engines", schema, probe, nullptr};
  return def;
}

}  // namespace epona
