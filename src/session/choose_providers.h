#pragma once
#include "session/executable.h"

namespace epona {

/// What happens when a provider that was asked for cannot run (session.fallback).
enum class FallbackPolicy { allow, warn, forbid };
FallbackPolicy fallback_policy(const SessionOptions& options);

/// Makes the providers of options.providers, in their order, and the CPU after them. Those that cannot run are recorded
/// in `placement`, logged as the policy says, and are an Error when it forbids falling back. Wrong names and options are
/// always an Error.
std::vector<ActiveProvider> choose_providers(const SessionOptions& options, Placement& placement);

/// Records, logs or throws as the policy says.
void report_inactive(const SessionOptions& options, Placement& placement, InactiveProvider inactive);

}  // namespace epona
