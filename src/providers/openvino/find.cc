#include "providers/openvino/find.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include "providers/vendor_files.h"

namespace epona::openvino {
namespace {

namespace fs = std::filesystem;

#if defined(__APPLE__)
constexpr const char* kLibraryStem = "libopenvino_c.";
constexpr const char* kLibraryPart = ".dylib";
#else
constexpr const char* kLibraryStem = "libopenvino_c.so";
constexpr const char* kLibraryPart = "";
#endif

/// "libopenvino_c.so.2641" -> "2026.4.1".
std::string version_of_file(const fs::path& library) {
  std::error_code ignored;
  std::string name = fs::canonical(library, ignored).filename().string();
  std::string digits;
  size_t at = name.find_last_of('.');
  if (at == std::string::npos) return "";
  digits = name.substr(at + 1);
  if (digits.size() < 4 || !std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); }))
    return "";
  return "20" + digits.substr(0, 2) + "." + digits[2] + "." + digits.substr(3);
}

/// The library in a folder; with several, the newest by name.
fs::path library_in(const fs::path& folder) {
  fs::path best;
  std::error_code ignored;
  for (auto& entry : fs::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(kLibraryStem) || name.find(kLibraryPart) == std::string::npos) continue;
    if (best.empty() || best.filename().string() < name) best = entry.path();
  }
  return best;
}

/// The version in the metadata folder beside a Python package: "openvino-2026.4.1.dist-info".
std::string packaged_version(const fs::path& site_packages) {
  std::error_code ignored;
  for (auto& entry : fs::directory_iterator(site_packages, ignored)) {
    std::string name = entry.path().filename().string();
    constexpr std::string_view prefix = "openvino-", suffix = ".dist-info";
    if (name.starts_with(prefix) && name.ends_with(suffix))
      return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  }
  return "";
}

bool try_folder(Installation& found, const fs::path& folder, const char* source, const std::string& version = "") {
  found.looked_in.push_back(folder);
  fs::path library = library_in(folder);
  if (library.empty()) return false;
  found.library = library;
  found.source = source;
  found.version = version.empty() ? version_of_file(library) : version;
  return true;
}

void find_in_directory(Installation& found, const fs::path& root) {
  const fs::path below[] = {"", "libs", "openvino/libs", "lib", "runtime/lib/intel64", "runtime/lib/aarch64", "lib64"};
  for (const fs::path& folder : below)
    if (try_folder(found, folder.empty() ? root : root / folder, "EPONA_OPENVINO_DIR")) return;
}

std::vector<fs::path> system_folders() {
  std::vector<fs::path> folders = library_folders();
  if (const char* home = std::getenv("INTEL_OPENVINO_DIR")) {
    folders.push_back(fs::path(home) / "runtime/lib/intel64");
    folders.push_back(fs::path(home) / "runtime/lib/aarch64");
  }
  folders.emplace_back("/opt/intel/openvino/runtime/lib/intel64");
  folders.emplace_back("/opt/homebrew/lib");
  return folders;
}

}  // namespace

Installation find_installation() {
  Installation found;
  if (const char* directory = std::getenv("EPONA_OPENVINO_DIR"); directory && *directory) {
    find_in_directory(found, directory);
    return found;
  }
  for (const fs::path& folder : package_folders()) {
    fs::path libs = folder / "openvino" / "libs";
    std::error_code ignored;
    if (fs::is_directory(libs, ignored) && try_folder(found, libs, "Python package", packaged_version(folder)))
      return found;
  }
  for (const fs::path& folder : system_folders())
    if (try_folder(found, folder, "system")) return found;
  return found;
}

std::vector<std::string> plugin_devices(const Installation& installation) {
  std::vector<std::string> devices;
  fs::path folder = installation.library.parent_path();
  std::error_code ignored;
  auto has = [&](const std::string& stem) {
    for (const fs::path& at : {folder, folder / fs::path("openvino-" + installation.version)})
      for (auto& entry : fs::directory_iterator(at, ignored))
        if (entry.path().filename().string().starts_with(stem)) return true;
    return false;
  };
  if (has("libopenvino_intel_cpu_plugin") || has("libopenvino_arm_cpu_plugin")) devices.push_back("CPU");
  if (has("libopenvino_intel_gpu_plugin")) devices.push_back("GPU");
  if (has("libopenvino_intel_npu_plugin")) devices.push_back("NPU");
  return devices;
}

std::vector<std::string> named_devices(const std::string& device_type) {
  size_t colon = device_type.find(':');
  bool composite = device_type.starts_with("AUTO") || device_type.starts_with("HETERO") ||
                   device_type.starts_with("MULTI") || device_type.starts_with("BATCH");
  std::string list = colon == std::string::npos ? (composite ? "" : device_type) : device_type.substr(colon + 1);
  std::vector<std::string> devices;
  std::istringstream items(list);
  for (std::string item; std::getline(items, item, ',');) {
    std::string name = item.substr(0, item.find_first_of(".( "));
    if (!name.empty() && std::find(devices.begin(), devices.end(), name) == devices.end()) devices.push_back(name);
  }
  return devices;
}

Probe probe(const OptionValues* options) {
  Probe result;
  Installation found = find_installation();
  const std::string install = cat("pip install openvino==", kTestedVersion);
  Finding library{"libopenvino_c", "", "", "", !found.library.empty()};
  if (library.ok) {
    library.found = cat(found.library.string(), " (", found.source, ")");
  } else if (found.looked_in.size() && std::getenv("EPONA_OPENVINO_DIR") && *std::getenv("EPONA_OPENVINO_DIR")) {
    library.found = cat("nothing in EPONA_OPENVINO_DIR=", std::getenv("EPONA_OPENVINO_DIR"));
    library.needed = cat("OpenVINO ", kOldestVersion, ".0 or later");
    library.fix = cat("unset EPONA_OPENVINO_DIR or let it name OpenVINO's folder; ", install);
  } else {
    library.found = "nothing";
    library.needed = cat("OpenVINO ", kOldestVersion, ".0 or later");
    library.fix = install;
  }
  result.findings.push_back(library);
  if (!library.ok) return result;

  result.version = found.version;
  Finding version{"version", found.version.empty() ? "unknown" : found.version, cat(kOldestVersion, ".0 or later"), "",
                  true};
  version.ok = found.version.empty() || std::atoi(found.version.c_str()) >= kOldestVersion;
  if (!version.ok) version.fix = install;
  result.findings.push_back(version);

  std::vector<std::string> devices = plugin_devices(found);
  std::string all;
  for (const std::string& device : devices) all += (all.empty() ? "" : ", ") + device;
  Finding plugins{"device plugins", all.empty() ? "none" : all, "", "", !devices.empty()};
  for (const std::string& device : named_devices(options ? options->text("device_type") : "CPU")) {
    if (device != "CPU" && device != "GPU" && device != "NPU") continue;  // OpenVINO itself judges other names
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) continue;
    plugins.ok = false;
    plugins.needed = device;
    plugins.fix = install;
  }
  result.findings.push_back(plugins);
  result.available = version.ok && plugins.ok;
  return result;
}

}  // namespace epona::openvino
