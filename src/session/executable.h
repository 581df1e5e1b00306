#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"
#include "placement/placement.h"
#include "providers/provider.h"
#include "providers/registry.h"
#include "run/executor.h"
#include "session/session_options.h"

namespace epona {

/// A provider that is active in a session, with its options.
struct ActiveProvider {
  std::unique_ptr<Provider> provider;
  const ProviderDef* def = nullptr;
  OptionValues options;
};

/// What a list of providers makes of a model. A session replaces it as a whole when its providers change; runs in flight
/// keep the old one alive.
struct Executable {
  std::vector<ActiveProvider> providers;  ///< in order of preference; outlive the plans, which are below
  std::vector<ActiveProvider> retired;    ///< took nodes and could build none
  Placement placement;
  std::vector<PassRecord> passes;
  /// Creation phases with milliseconds, in order.
  std::vector<std::pair<std::string, double>> creation_times;
  std::unique_ptr<Executor> executor;
};

/// Makes the providers, optimises the graph of `model`, places its nodes and builds the plans. The graph is used up. A
/// provider that fails as a whole is left out, if the options allow it: then the model is read again from memory.
std::shared_ptr<const Executable> build_executable(Model& model, const SessionOptions& options);

/// What the loader has to know of a session's options.
LoadOptions load_options(const SessionOptions& options);

/// The log threshold of a session.
Severity log_threshold(const SessionOptions& options);

/// A session configuration entry, or `otherwise`.
std::string config_value(const SessionOptions& options, const std::string& key, const std::string& otherwise = "");

/// Milliseconds between calls.
class Stopwatch {
 public:
  double lap();

 private:
  int64_t last_ns_ = now();
  static int64_t now();
};

/// The same; throws when a file of the model changed while it was read (a MappingGuard must live).
std::shared_ptr<const Executable> build_from_files(Model& model, const SessionOptions& options);

}  // namespace epona
