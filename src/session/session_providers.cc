#include <algorithm>

#include "base/nearest.h"
#include "session/choose_providers.h"
#include "session/session.h"

namespace epona {
namespace {

/// "ep.dynamic.workload_type" and "workload_type" are the same; two keys of onnxruntime carry a provider's name.
std::string plain_key(std::string key) {
  constexpr std::string_view kPrefix = "ep.dynamic.";
  if (key.starts_with(kPrefix)) key.erase(0, kPrefix.size());
  if (key.starts_with("qnn_htp_")) key.erase(0, 4);
  return key;
}

[[noreturn]] void refuse_key(const Executable& executable, const std::string& key, const OptionSpec* found) {
  std::vector<std::string_view> live;
  std::string list;
  for (const ActiveProvider& active : executable.providers)
    for (const OptionSpec& spec : active.def->schema())
      if (spec.live) {
        live.push_back(spec.key);
        list += cat(list.empty() ? "" : ", ", spec.key, " (", active.def->name, ")");
      }
  if (list.empty()) list = "none";
  if (found)
    fail(Code::invalid_argument, "option '", key, "' cannot be changed while the session lives; these can: ", list);
  fail(Code::invalid_argument, "no active provider has an option '", key,
       "' that can be changed while the session lives.", did_you_mean(key, live), " Those that can: ", list);
}

}  // namespace

std::shared_ptr<const Executable> Session::rebuild(const SessionOptions& options) const {
  MappingGuard guard;
  Stopwatch watch;
  Model model = load_again(model_.source, load_options(options));
  double ms = watch.lap();
  auto executable = build_from_files(model, options);
  log(Severity::info, log_threshold(options), options.log_id,
      cat("planned the model again: read in ", ms, " ms, whole ", ms + watch.lap(), " ms"));
  return executable;
}

std::vector<std::pair<std::string, OptionMap>> Session::provider_options() const {
  std::vector<std::pair<std::string, OptionMap>> list;
  auto executable = this->executable();
  std::lock_guard lock(mutex_);
  for (const ActiveProvider& active : executable->providers) {
    OptionMap values = active.options.all();
    // The requests have what was changed in place since.
    for (const ProviderRequest& request : options_.providers)
      if (request.name == active.def->name)
        for (auto& [key, text] : request.options)
          values[key] = check_option(request.name, *find_option(active.def->schema(), key), text);
    list.emplace_back(active.def->name, std::move(values));
  }
  return list;
}

OptionMap Session::given_now(const ActiveProvider& active) const {
  std::lock_guard lock(mutex_);
  for (const ProviderRequest& request : options_.providers)
    if (request.name == active.def->name) return request.options;
  return active.options.given();
}

void Session::set_providers(std::vector<ProviderRequest> requests) {
  std::lock_guard one_at_a_time(rebuild_mutex_);
  SessionOptions next = options_;
  next.providers = std::move(requests);
  next.optimized_model_path.clear();  // written once, when the session was made
  auto executable = rebuild(next);
  std::lock_guard lock(mutex_);
  options_.providers = std::move(next.providers);
  executable_ = std::move(executable);
}

void Session::set_dynamic_options(const OptionMap& options) {
  std::lock_guard one_at_a_time(rebuild_mutex_);
  auto now = executable();
  struct Change {
    const ActiveProvider* active;
    std::string key, value;
  };
  std::vector<Change> changes;
  for (auto& [given, text] : options) {
    std::string key = plain_key(given);
    const OptionSpec* found = nullptr;
    size_t before = changes.size();
    for (const ActiveProvider& active : now->providers) {
      const OptionSpec* spec = find_option(active.def->schema(), key);
      if (!spec) continue;
      found = spec;
      if (spec->live) changes.push_back({&active, key, check_option(active.def->name, *spec, text)});
    }
    if (changes.size() == before) refuse_key(*now, given, found);
  }
  // What a provider cannot do in place is done by planning anew with the changed options.
  SessionOptions next = options_;
  next.optimized_model_path.clear();
  next.providers.clear();
  for (const ActiveProvider& active : now->providers) next.providers.push_back({active.def->name, given_now(active)});
  bool replan = false;
  for (const Change& change : changes) {
    auto request = std::find_if(next.providers.begin(), next.providers.end(),
                                [&](const ProviderRequest& r) { return r.name == change.active->def->name; });
    request->options[change.key] = change.value;
    replan |= !change.active->provider->can_change(change.key);
  }
  if (!replan) {
    for (const Change& change : changes) change.active->provider->change(change.key, change.value);
    std::lock_guard lock(mutex_);
    options_.providers = std::move(next.providers);
    return;
  }
  next.config["session.fallback"] = "forbid";  // a device that is not there must not move the session to the CPU
  auto executable = rebuild(next);
  std::lock_guard lock(mutex_);
  options_.providers = std::move(next.providers);
  executable_ = std::move(executable);
}

void Session::leave_provider(const std::string& provider, const std::string& cause,
                             const std::shared_ptr<const Executable>& failed) const {
  std::lock_guard one_at_a_time(rebuild_mutex_);
  if (executable() != failed) return;
  SessionOptions next = options_;
  next.optimized_model_path.clear();
  next.providers.clear();
  for (const ActiveProvider& active : failed->providers)
    if (provider != active.def->name) next.providers.push_back({active.def->name, given_now(active)});
  auto executable = std::const_pointer_cast<Executable>(rebuild(next));
  Placement& placement = executable->placement;
  placement.inactive = failed->placement.inactive;
  report_inactive(options_, placement, {provider, "run", cause, ""});
  std::lock_guard lock(mutex_);
  executable_ = std::move(executable);
}

}  // namespace epona
