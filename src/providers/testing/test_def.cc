#include "providers/testing/test_def.h"

#include <cstdlib>

#include "providers/testing/test_provider.h"

namespace epona {
namespace {

using enum OptionType;

constexpr OptionSpec kOptions[] = {
    {"device_id", integer, "0", "0..1", "which of the two pretend devices", true},
    {"gpu_mem_limit", integer, "9223372036854775807", "1..", "bytes of pretend device memory", true},
    {"ops", text, "", "", "operators to take, separated by ','; empty: all it can"},
    {"fail", choice, "none", "none|probe|start|claim|build|run|kernel_error", "where to fail"},
    {"fail_op", text, "", "", "the operator that fails to build or run; empty: any"},
    {"good_runs", integer, "0", "0..", "calls of each kernel that go well before one fails"},
};

OptionSchema schema() { return kOptions; }

Probe probe(const OptionValues* options) {
  Probe probe;
  probe.available = !options || options->text("fail") != "probe";
  if (!probe.available)
    probe.findings.push_back({"device", "none", "a pretend device", "do not set fail=probe", false});
  return probe;
}

template <int kKey>
std::unique_ptr<Provider> make(const OptionValues& options, const ProviderContext&) {
  const char* name = kKey == 0x5a ? "TestExecutionProvider" : "OtherTestExecutionProvider";
  return std::make_unique<testing::TestProvider>(name, kKey, options);
}

}  // namespace

const ProviderDef* find_test_provider(std::string_view name) {
  static const ProviderDef defs[] = {
      {"TestExecutionProvider", "a pretend device, for tests", schema, probe, make<0x5a>},
      {"OtherTestExecutionProvider", "another one", schema, probe, make<0xc3>}};
  static const bool enabled = [] {
    const char* text = std::getenv("EPONA_TEST_PROVIDERS");
    return text && *text && *text != '0';
  }();
  if (!enabled) return nullptr;
  for (const ProviderDef& def : defs)
    if (name == def.name) return &def;
  return nullptr;
}

}  // namespace epona
