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

struct Kind {
  const char *name, *device_type;
  unsigned char key;
};

constexpr Kind kKinds[] = {{"TestExecutionProvider", "test", 0x5a}, {"OtherTestExecutionProvider", "othertest", 0xc3}};

template <int kIndex>
std::unique_ptr<Provider> make(const OptionValues& options, const ProviderContext&) {
  constexpr Kind kind = kKinds[kIndex];
  return std::make_unique<testing::TestProvider>(kind.name, kind.device_type, kind.key, options);
}

template <int kIndex>
std::shared_ptr<Device> open_device(int id) {
  constexpr Kind kind = kKinds[kIndex];
  if (id < 0 || id > 1) fail(Code::not_found, kind.device_type, ":", id, " does not exist: the ids are 0 and 1");
  return std::make_shared<testing::TestDevice>(kind.name, kind.device_type, id, kind.key, INT64_MAX);
}

}  // namespace

const ProviderDef* find_test_provider(std::string_view name) {
  static const ProviderDef defs[] = {
      {kKinds[0].name, "a pretend device, for tests", schema, probe, make<0>, open_device<0>},
      {kKinds[1].name, "another one", schema, probe, make<1>, open_device<1>}};
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
