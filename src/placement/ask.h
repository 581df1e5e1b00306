#pragma once
#include "providers/provider.h"

namespace epona {

/// Provider::claim, whose failure is the whole provider's (ProviderFailure).
Claim ask(Provider& provider, const Graph& graph);

}  // namespace epona
