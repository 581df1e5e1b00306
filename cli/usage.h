#pragma once
#include <string>
#include <string_view>

namespace epona::cli {

/// What `epona --help` prints.
std::string usage();

/// What `epona COMMAND --help` prints; empty for an unknown command.
std::string usage(std::string_view command);

/// The commands, as " Did you mean 'x'?" for a word that is none of them.
std::string suggest_command(std::string_view word);

}  // namespace epona::cli
