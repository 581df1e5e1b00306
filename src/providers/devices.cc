#include "providers/devices.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <vector>

#include "base/nearest.h"
#include "providers/registry.h"

namespace epona {
namespace {

struct Kind {
  std::string_view type;
  int vendor;                 ///< PCI id
  std::string_view provider;  ///< whose memory it is; empty: no provider of this project works there
};

// The names that onnxruntime's Python API takes.
constexpr Kind kKinds[] = {
    {"cuda", 0x10de, "CUDAExecutionProvider"},
    {"gpu", 0x10de, "CUDAExecutionProvider"},
    {"gpu", 0x1002, "ROCMExecutionProvider"},
    {"gpu", 0x1414, "DmlExecutionProvider"},
    {"dml", 0x1414, "DmlExecutionProvider"},
    {"npu", 0x5143, "QNNExecutionProvider"},
    {"webgpu", 0, ""},
    {"cann", 0x1413, ""},
    {"test", 0, "TestExecutionProvider"},
    {"othertest", 0, "OtherTestExecutionProvider"},
};

bool exists(const Kind& kind) { return kind.provider.empty() || find_provider(kind.provider); }

std::shared_ptr<Device> opened(const ProviderDef& def, int id) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::pair<std::string_view, int>, std::shared_ptr<Device>>;  // never closed
  std::lock_guard lock(mutex);
  auto& device = all[{def.name, id}];
  if (!device) device = def.open_device(id);
  return device;
}

}  // namespace

bool is_device_type(std::string_view type) {
  return type == "cpu" || std::any_of(std::begin(kKinds), std::end(kKinds),
                                      [&](const Kind& kind) { return kind.type == type && exists(kind); });
}

std::shared_ptr<Device> find_device(std::string_view type, int id, int vendor) {
  if (type == "cpu") return nullptr;
  std::string reasons;
  std::vector<std::string_view> known{"cpu"};
  bool found = false;
  for (const Kind& kind : kKinds) {
    if (!exists(kind)) continue;
    known.push_back(kind.type);
    if (kind.type != type || (vendor > 0 && kind.vendor != vendor && type == "gpu")) continue;
    found = true;
    const ProviderDef* def = find_provider(kind.provider);
    if (!def) {
      reasons += " No provider of Epona works in its memory: use \"cpu\".";
      continue;
    }
    Probe probe = probe_provider(*def);
    if (probe.available && def->open_device) return opened(*def, id);
    if (probe.available)
      reasons += cat(" ", def->name, " works in the host's memory: use \"cpu\".");
    else
      reasons += cat(" ", def->name, " cannot run here: ", probe.cause(), ". To fix it: ", probe.fix(), ".");
  }
  if (!found)
    fail(Code::not_found, "Unsupported device type: ", type, vendor > 0 ? cat(" of vendor ", vendor) : "", ".",
         did_you_mean(type, known));
  fail(Code::not_found, "Can't allocate memory on the device '", type, ":", id, "'.", reasons);
}

std::shared_ptr<Device> find_device_named(const std::string& name) {
  size_t colon = std::min(name.find(':'), name.size());
  int id = 0;
  if (colon < name.size()) {
    const char* end = name.data() + name.size();
    auto [at, error] = std::from_chars(name.data() + colon + 1, end, id);
    if (error != std::errc() || at != end || id < 0)
      fail(Code::invalid_argument, "a device is named as \"cuda:0\", found \"", name, "\"");
  }
  return find_device(std::string_view(name).substr(0, colon), id);
}

}  // namespace epona
