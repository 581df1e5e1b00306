#include <epona/version.h>

namespace epona {

std::string_view version() noexcept { return EPONA_VERSION; }

}  // namespace epona
