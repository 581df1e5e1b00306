#pragma once
#include "providers/registry.h"

namespace epona {

/// Providers for tests exist only where the environment sets EPONA_TEST_PROVIDERS=1, and in no list.
const ProviderDef* find_test_provider(std::string_view name);

}  // namespace epona
