#pragma once
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "providers/registry.h"

namespace epona {

/// Folders in which Python packages lie, where vendors put their libraries. Python tells its own at import; otherwise they
/// are those of the active environment, the python3 on PATH, the user and the system.
void set_package_folders(std::vector<std::string> folders);
const std::vector<std::filesystem::path>& package_folders();

/// Folders that the loader searches: LD_LIBRARY_PATH, those of /etc/ld.so.conf.d, and the usual ones.
const std::vector<std::filesystem::path>& library_folders();

/// A shared library by the first of `names` that exists, in the vendor's `in_packages` folders (below the package
/// folders), then `more` (absolute), then the loader's. Only looks; opens nothing.
std::optional<std::filesystem::path> find_library(const std::vector<std::string>& names,
                                                  const std::vector<std::string>& in_packages = {},
                                                  const std::vector<std::string>& more = {});

/// A package's version from its dist-info folder, "" when it is not installed.
std::string package_version(const std::string& name);

/// What follows ".so." in the name that a library's link leads to: "13.0.88".
std::string library_version(const std::filesystem::path& library);

/// A finding for a library: its path, or "not found" with what is needed and how to get it.
Finding library_finding(const std::string& label, const std::vector<std::string>& names,
                        const std::vector<std::string>& in_packages, const std::string& needed, const std::string& fix,
                        const std::vector<std::string>& more = {});

/// A finding for the operating system: ok when it starts with `needed`.
Finding platform_finding(const std::string& needed);

/// "Linux 6.1.0 x86_64"
std::string platform_text();

/// First line of a file, "" when it cannot be read.
std::string first_line(const std::filesystem::path& file);

}  // namespace epona
