#include "kernels/isa.h"
#include "providers/cpu/cpu_provider.h"
#include "providers/registry.h"

namespace epona {
namespace {

// What callers of onnxruntime pass along; memory is planned per graph here, so there is no arena to tune.
constexpr OptionSpec kOptions[] = {
    {"arena_extend_strategy", OptionType::choice, "kNextPowerOfTwo", "kNextPowerOfTwo|kSameAsRequested",
     "accepted for compatibility: memory is planned per graph and needs no arena"},
    {"use_arena", OptionType::boolean, "1", "", "accepted for compatibility: memory is planned per graph"},
};

OptionSchema schema() { return kOptions; }

Probe probe(const OptionValues*) {
  Probe probe;
  probe.available = true;
  probe.findings.push_back({"instruction set", isa_name(), "", "", true});
  return probe;
}

std::unique_ptr<Provider> make(const OptionValues&, const ProviderContext&) {
  return std::make_unique<cpu::CpuProvider>();
}

}  // namespace

const ProviderDef& cpu_provider_def() {
  static const ProviderDef def{"CPUExecutionProvider", "this CPU; always there", schema, probe, make};
  return def;
}

}  // namespace epona
