#include "providers/vendor_files.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>

namespace epona {
namespace fs = std::filesystem;
namespace {

std::vector<fs::path> g_packages;  // set before the first probe, by Python
std::once_flag g_packages_once;

void add(std::vector<fs::path>& list, const fs::path& folder) {
  std::error_code error;
  if (!folder.empty() && fs::is_directory(folder, error) && std::find(list.begin(), list.end(), folder) == list.end())
    list.push_back(folder);
}

std::vector<std::string> split_path(const char* text) {
  std::vector<std::string> parts;
  std::string_view rest = text ? text : "";
  while (!rest.empty()) {
    size_t end = std::min(rest.find(':'), rest.size());
    if (end) parts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return parts;
}

/// PREFIX/lib/python3.*/{site,dist}-packages
void add_environment(std::vector<fs::path>& list, const fs::path& prefix) {
  std::error_code error;
  for (const char* lib : {"lib", "lib64"})
    for (const auto& entry : fs::directory_iterator(prefix / lib, error)) {
      if (!entry.path().filename().string().starts_with("python3")) continue;
      add(list, entry.path() / "site-packages");
      add(list, entry.path() / "dist-packages");
    }
}

std::vector<fs::path> guess_packages() {
  std::vector<fs::path> list;
  for (const std::string& folder : split_path(std::getenv("PYTHONPATH"))) add(list, folder);
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* prefix = std::getenv(name)) add_environment(list, prefix);
  std::error_code error;
  for (const std::string& folder : split_path(std::getenv("PATH")))
    if (fs::path python = fs::path(folder) / "python3"; fs::exists(python, error)) {
      add_environment(list, fs::path(folder).parent_path());
      break;
    }
  if (const char* home = std::getenv("HOME")) add_environment(list, fs::path(home) / ".local");
  add_environment(list, "/usr/local");
  add_environment(list, "/usr");
  return list;
}

std::vector<fs::path> loader_folders() {
  std::vector<fs::path> list;
  for (const std::string& folder : split_path(std::getenv("LD_LIBRARY_PATH"))) add(list, folder);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/etc/ld.so.conf.d", error)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (line.starts_with('/')) add(list, line);
  }
  for (const char* folder : {"/usr/local/lib", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
                             "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib",
                             "/lib", "/usr/local/cuda/lib64", "/opt/rocm/lib", "/usr/lib/wsl/lib"})
    add(list, folder);
  return list;
}

}  // namespace

void set_package_folders(std::vector<std::string> folders) {
  std::call_once(g_packages_once, [&] {
    for (const std::string& folder : folders) add(g_packages, folder);
  });
}

const std::vector<fs::path>& package_folders() {
  std::call_once(g_packages_once, [] { g_packages = guess_packages(); });
  return g_packages;
}

const std::vector<fs::path>& library_folders() {
  static const std::vector<fs::path> folders = loader_folders();
  return folders;
}

std::optional<fs::path> find_library(const std::vector<std::string>& names, const std::vector<std::string>& in_packages,
                                     const std::vector<std::string>& more) {
  std::error_code error;
  std::vector<fs::path> folders;
  for (const fs::path& packages : package_folders())
    for (const std::string& below : in_packages) folders.push_back(packages / below);
  folders.insert(folders.end(), more.begin(), more.end());
  folders.insert(folders.end(), library_folders().begin(), library_folders().end());
  for (const std::string& name : names)
    for (const fs::path& folder : folders)
      if (fs::exists(folder / name, error)) return folder / name;
  return std::nullopt;
}

std::string package_version(const std::string& name) {
  std::string stem = name;
  std::replace(stem.begin(), stem.end(), '-', '_');
  std::error_code error;
  for (const fs::path& packages : package_folders())
    for (const auto& entry : fs::directory_iterator(packages, error)) {
      std::string folder = entry.path().filename().string();
      if (!folder.ends_with(".dist-info") || !folder.starts_with(stem + "-")) continue;
      return folder.substr(stem.size() + 1, folder.size() - stem.size() - 1 - std::string(".dist-info").size());
    }
  return "";
}

std::string library_version(const fs::path& library) {
  std::error_code error;
  std::string name = fs::canonical(library, error).filename().string();
  size_t at = name.find(".so.");
  return error || at == std::string::npos ? "" : name.substr(at + 4);
}

namespace {

/// Every shared library in the loader's folders: listed once, when something is missing.
const std::vector<fs::path>& installed_libraries() {
  static const std::vector<fs::path> list = [] {
    std::vector<fs::path> found;
    std::error_code error;
    for (const fs::path& folder : library_folders())
      for (const auto& entry : fs::directory_iterator(folder, error))
        if (entry.path().filename().string().find(".so") != std::string::npos) found.push_back(entry.path());
    return found;
  }();
  return list;
}

/// The same library in a version that is not wanted, "" when there is none.
std::string other_version(const std::string& name, const std::vector<std::string>& in_packages) {
  std::string stem = name.substr(0, name.find(".so") + 3);
  auto matches = [&](const fs::path& path) {
    std::string file = path.filename().string();
    return file.starts_with(stem) && (file.size() == stem.size() || file[stem.size()] == '.');
  };
  std::error_code error;
  for (const fs::path& packages : package_folders())
    for (const std::string& below : in_packages)
      for (const auto& entry : fs::directory_iterator(packages / below, error))
        if (matches(entry.path())) return entry.path().string();
  for (const fs::path& path : installed_libraries())
    if (matches(path)) return path.string();
  return "";
}

}  // namespace

Finding library_finding(const std::string& label, const std::vector<std::string>& names,
                        const std::vector<std::string>& in_packages, const std::string& needed, const std::string& fix,
                        const std::vector<std::string>& more) {
  auto found = find_library(names, in_packages, more);
  if (!found) {
    for (const std::string& name : names)
      if (std::string other = other_version(name, in_packages); !other.empty())
        return {label, "only " + other + ", another version", needed, fix, false};
    return {label, "not found", needed, fix, false};
  }
  std::string version = library_version(*found);
  return {label, found->string() + (version.empty() ? "" : " (" + version + ")"), needed, "", true};
}

std::string platform_text() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return cat(name.sysname, " ", name.release, " ", name.machine);
}

Finding platform_finding(const std::string& needed) {
  std::string found = platform_text();
  bool ok = found.starts_with(needed);
  return {"platform", found, needed, ok ? "" : "run on " + needed, ok};
}

std::string first_line(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

}  // namespace epona
