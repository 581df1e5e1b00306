#include "providers/registry.h"

namespace epona {
namespace {

OptionSchema schema() { return {}; }

Probe probe(const OptionValues*) { return {}; }

}  // namespace

const ProviderDef& qnn_provider_def() {
  static const ProviderDef def{"QNNExecutionProvider", "Qualcomm NPUs", schema, probe, nullptr};
  return def;
}

}  // namespace epona
