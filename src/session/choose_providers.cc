#include "session/choose_providers.h"

#include <algorithm>

#include "base/nearest.h"

namespace epona {
namespace {

constexpr const char* kCpu = "CPUExecutionProvider";

/// The options of a request, and those given as session configuration: "ep.cudaexecutionprovider.device_id", or
/// "ep.cuda.device_id". The request comes first.
OptionMap all_options(const ProviderRequest& request, const SessionOptions& session) {
  std::string name = request.name;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  OptionMap options = request.options;
  for (const std::string& prefix :
       {cat("ep.", name, "."), cat("ep.", name.substr(0, name.find("executionprovider")), ".")})
    for (auto it = session.config.lower_bound(prefix); it != session.config.end() && it->first.starts_with(prefix);
         ++it)
      options.emplace(it->first.substr(prefix.size()), it->second);
  return options;
}

ActiveProvider start(const ProviderDef& def, OptionValues options, const SessionOptions& session) {
  ProviderContext context;
  context.severity = log_threshold(session);
  context.log_id = session.log_id;
  context.config = session.config;
  context.threads = std::max(0, session.intra_op_threads);
  ActiveProvider active;
  active.provider = def.make(options, context);
  active.def = &def;
  active.options = std::move(options);
  return active;
}

}  // namespace

FallbackPolicy fallback_policy(const SessionOptions& options) {
  std::string text = config_value(options, "session.fallback", "warn");
  if (text == "allow") return FallbackPolicy::allow;
  if (text == "warn") return FallbackPolicy::warn;
  if (text == "forbid") return FallbackPolicy::forbid;
  std::string_view known[] = {"allow", "warn", "forbid"};
  fail(Code::invalid_argument, "session.fallback is '", text, "'; expected allow, warn or forbid.",
       did_you_mean(text, known));
}

void report_inactive(const SessionOptions& options, Placement& placement, InactiveProvider inactive) {
  FallbackPolicy policy = fallback_policy(options);
  std::string sentence = inactive.sentence();
  if (policy == FallbackPolicy::forbid)
    fail(Code::ep_fail, sentence, " Falling back is forbidden (session.fallback=forbid or enable_fallback=0).");
  if (policy == FallbackPolicy::warn)
    log(Severity::warning, log_threshold(options), options.log_id, sentence + " Its nodes run on the next provider.");
  placement.inactive.push_back(std::move(inactive));
}

std::vector<ActiveProvider> choose_providers(const SessionOptions& options, Placement& placement) {
  std::vector<ActiveProvider> active;
  bool cpu_asked = false;
  auto is_active = [&](std::string_view name) {
    return std::any_of(active.begin(), active.end(), [&](const ActiveProvider& a) { return name == a.def->name; });
  };
  for (const ProviderRequest& request : options.providers) {
    const ProviderDef* def = find_provider(request.name);
    if (!def && is_foreign_provider(request.name)) {
      report_inactive(options, placement,
                      {request.name, "probe", "Epona has no provider of this name",
                       "ask for one of those that `epona doctor` lists"});
      continue;
    }
    if (!def)
      fail(Code::invalid_argument, "Unknown Provider Type: ", request.name, ".", suggest_provider(request.name));
    if (is_active(request.name)) continue;
    OptionValues values(request.name, def->schema(), all_options(request, options));
    cpu_asked |= request.name == kCpu;
    Probe probe = probe_provider(*def, &values);
    if (!probe.available) {
      report_inactive(options, placement, {request.name, "probe", probe.cause(), probe.fix()});
      continue;
    }
    try {
      active.push_back(start(*def, std::move(values), options));
    } catch (const std::exception& error) {
      report_inactive(options, placement, {request.name, "start", error.what(), ""});
    }
  }
  if (cpu_asked && config_value(options, "session.disable_cpu_ep_fallback") == "1")
    fail(Code::invalid_argument,
         "Conflicting session configuration: explicitly added the CPU EP to the session, but also "
         "disabled fallback to the CPU EP via session configuration options.");
  if (!is_active(kCpu)) {
    const ProviderDef& cpu = cpu_provider_def();
    active.push_back(start(cpu, OptionValues(cpu.name, cpu.schema(), {}), options));
  }
  return active;
}

}  // namespace epona
