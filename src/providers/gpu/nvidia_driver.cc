#include "providers/gpu/nvidia_driver.h"

#include <algorithm>
#include <filesystem>

#include "providers/vendor_files.h"

namespace epona {
namespace fs = std::filesystem;
namespace {

// The oldest drivers that run CUDA 12 and CUDA 13 programs.
constexpr int kDriverForCuda12 = 525;
constexpr int kDriverForCuda13 = 580;
constexpr const char* kDriverFix =
    "install NVIDIA's driver (Debian: apt install nvidia-driver; in a container: run it with --gpus all)";

/// "580.65" out of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ...".
std::string driver_version() {
  std::string line = first_line("/proc/driver/nvidia/version");
  for (size_t at = 0; at < line.size(); ++at)
    if ((at == 0 || line[at - 1] == ' ') && line[at] >= '1' && line[at] <= '9' && line.find('.', at) < at + 5)
      return line.substr(at, line.find(' ', at) - at);
  return "";
}

int count_devices() {
  int count = 0;
  std::error_code error;
  while (fs::exists("/dev/nvidia" + std::to_string(count), error)) ++count;
  // WSL has one node for all.
  return count == 0 && fs::exists("/dev/dxg", error) && find_library({"libcuda.so.1"}) ? 1 : count;
}

}  // namespace

std::vector<Finding> nvidia_driver_findings(int64_t device) {
  std::vector<Finding> findings{platform_finding("Linux")};
  findings.push_back(
      library_finding("driver library libcuda.so.1", {"libcuda.so.1"}, {}, "NVIDIA driver 525 or newer", kDriverFix));
  std::string version = driver_version();
  if (!version.empty()) {
    bool ok = std::atoi(version.c_str()) >= kDriverForCuda12;
    findings.push_back({"driver", version, cat(kDriverForCuda12, " or newer"), ok ? "" : kDriverFix, ok});
  }
  int devices = count_devices();
  bool ok = device < devices;
  findings.push_back({"device", devices == 0 ? "no NVIDIA GPU (no /dev/nvidia0)" : cat(devices, " NVIDIA GPU(s)"),
                      cat("an NVIDIA GPU numbered ", device),
                      ok             ? ""
                      : devices == 0 ? "use a machine with an NVIDIA GPU; in a container: run it with --gpus all"
                                     : cat("set device_id to at most ", devices - 1),
                      ok});
  return findings;
}

std::vector<Finding> cuda_library_findings() {
  int driver = std::atoi(driver_version().c_str());
  // Libraries of a major version come together: take the one that is already there, else what the driver can run.
  bool twelve = find_library({"libnvrtc.so.12"}, {"nvidia/cuda_nvrtc/lib"}).has_value();
  bool thirteen = find_library({"libnvrtc.so.13"}, {"nvidia/cu13/lib"}).has_value();
  bool newer = thirteen || (!twelve && (driver == 0 || driver >= kDriverForCuda13));
  if (newer)
    return {
        library_finding("libnvrtc", {"libnvrtc.so.13"}, {"nvidia/cu13/lib"}, "CUDA 12 or 13",
                        "pip install nvidia-cuda-nvrtc==13.*"),
        library_finding("libcublasLt", {"libcublasLt.so.13"}, {"nvidia/cu13/lib"}, "CUDA 13",
                        "pip install nvidia-cublas==13.*"),
        library_finding("libcudnn", {"libcudnn.so.9"}, {"nvidia/cudnn/lib"}, "cuDNN 9",
                        "pip install nvidia-cudnn-cu13==9.*"),
    };
  return {
      library_finding("libnvrtc", {"libnvrtc.so.12"}, {"nvidia/cuda_nvrtc/lib"}, "CUDA 12 or 13",
                      "pip install nvidia-cuda-nvrtc-cu12"),
      library_finding("libcublasLt", {"libcublasLt.so.12"}, {"nvidia/cublas/lib"}, "CUDA 12",
                      "pip install nvidia-cublas-cu12"),
      library_finding("libcudnn", {"libcudnn.so.9"}, {"nvidia/cudnn/lib"}, "cuDNN 9",
                      "pip install nvidia-cudnn-cu12==9.*"),
  };
}

}  // namespace epona
