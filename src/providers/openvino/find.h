#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "providers/registry.h"

namespace epona::openvino {

constexpr const char* kTestedVersion = "2026.4.1";  ///< the one in requirements-dev.txt
constexpr int kOldestVersion = 2024;                ///< the first with all functions that are used

/// An OpenVINO on this machine, found by looking at files only.
struct Installation {
  std::filesystem::path library;  ///< libopenvino_c; empty when there is none
  std::string version;            ///< from the package's metadata or the file's name; may be empty
  std::string source;             ///< "EPONA_OPENVINO_DIR", "Python package", "system"
  std::vector<std::filesystem::path> looked_in;
};

/// EPONA_OPENVINO_DIR alone when it is set; else the `openvino` package of this Python, then the system.
Installation find_installation();

/// Devices that an installation has a plugin for: CPU, GPU, NPU.
std::vector<std::string> plugin_devices(const Installation& installation);

/// The devices named by a device_type: "HETERO:GPU,CPU" -> GPU, CPU; "GPU.1" -> GPU.
std::vector<std::string> named_devices(const std::string& device_type);

Probe probe(const OptionValues* options);

}  // namespace epona::openvino
