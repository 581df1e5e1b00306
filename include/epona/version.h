#pragma once

#include <string_view>

#if defined(_WIN32)
#define EPONA_API
#else
#define EPONA_API __attribute__((visibility("default")))
#endif

namespace epona {

// The library's version, as "major.minor.patch".
EPONA_API std::string_view version() noexcept;

}  // namespace epona
