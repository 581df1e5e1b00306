#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "providers/options.h"
#include "providers/provider.h"

namespace epona {

/// One thing that a probe looked for.
struct Finding {
  std::string what;    ///< "libcudnn.so.9", "device", "driver", "platform", "this build"
  std::string found;   ///< what is there: a path, a version, "nothing"
  std::string needed;  ///< what is needed: "9.x", "Windows 10"; empty for a mere observation
  std::string fix;     ///< the command or step that helps; empty when it is all right
  bool ok = false;
};

/// Whether a provider can run here, and everything looked at to say so.
struct Probe {
  bool available = false;
  std::string version;  ///< of the vendor's library, when found
  std::vector<Finding> findings;

  /// One sentence: the findings that are not ok with what is needed; empty when available.
  std::string cause() const;
  /// The fixes of the findings that are not ok, joined by "; ".
  std::string fix() const;
};

/// What a provider may know of its session.
struct ProviderContext {
  Severity severity = Severity::warning;  ///< log threshold
  std::string log_id;
  std::map<std::string, std::string> config;  ///< session configuration entries
  int threads = 0;                            ///< of the session's pool; 0: as many as the process may use
};

/// A provider as the registry knows it, without making one.
struct ProviderDef {
  const char* name;
  const char* summary;  ///< one line: what it runs on
  OptionSchema (*schema)();
  /// Looks at files, versions and devices; opens nothing heavy. `options` (may be null) narrow what is looked for, e.g.
  /// the device.
  Probe (*probe)(const OptionValues* options);
  /// Null for a provider that is still to come: it is never available, and its probe says so.
  std::unique_ptr<Provider> (*make)(const OptionValues& options, const ProviderContext& context);
  /// The device numbered `id`, without a session and without a limit (devices.h keeps it). Throws where there is none;
  /// null for providers that work in the host's memory.
  std::shared_ptr<Device> (*open_device)(int id) = nullptr;
};

/// All providers in order of preference: onnxruntime's eight, then ours. Providers for tests are not among them.
const std::vector<const ProviderDef*>& all_providers();

/// By name, providers for tests included; nullptr when there is none.
const ProviderDef* find_provider(std::string_view name);

/// The probe, with the answer "not part of this build yet" where there is no make(). Nothing thrown leaves it: a probe
/// that fails is a finding.
Probe probe_provider(const ProviderDef& def, const OptionValues* options = nullptr);

/// A provider that builds of onnxruntime have and Epona does not: asking for one is not a slip of the pen.
bool is_foreign_provider(std::string_view name);

/// The nearest provider name, as " Did you mean 'x'?".
std::string suggest_provider(std::string_view name);

// One a provider, in its folder.
const ProviderDef& cpu_provider_def();
const ProviderDef& cuda_provider_def();
const ProviderDef& rocm_provider_def();
const ProviderDef& tensorrt_provider_def();
const ProviderDef& openvino_provider_def();
const ProviderDef& coreml_provider_def();
const ProviderDef& directml_provider_def();
const ProviderDef& qnn_provider_def();

}  // namespace epona
