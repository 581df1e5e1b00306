#pragma once
#include <functional>
#include <string>
#include <string_view>

namespace epona {

enum class Severity : int { verbose = 0, info = 1, warning = 2, error = 3, fatal = 4 };

/// Where messages go: by default one line on stderr per message.
using LogSink = std::function<void(Severity, std::string_view log_id, std::string_view message)>;

/// Messages below this severity are dropped. Process-wide default; sessions have their own.
void set_default_severity(Severity severity);
Severity default_severity();
void set_log_sink(LogSink sink);

/// Writes a message if `severity` is at or above `threshold`.
void log(Severity severity, Severity threshold, std::string_view log_id, std::string_view message);

}  // namespace epona
