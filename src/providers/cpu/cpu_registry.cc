#include "providers/cpu/cpu_registry.h"

#include <algorithm>

#include "providers/cpu/register_all_cpu.h"

namespace epona::cpu {

void CpuRegistry::add(const CpuKernel& kernel) {
  auto& list = kernels_[{kernel.domain, kernel.name}];
  auto at = std::find_if(list.begin(), list.end(), [&](const CpuKernel& other) { return other.rank < kernel.rank; });
  list.insert(at, kernel);
}

void CpuRegistry::add_internal(const OpDef& def) {
  OpDef copy = def;
  copy.domain = "epona";
  internal_[def.name] = copy;
}

std::vector<const CpuKernel*> CpuRegistry::candidates(const Node& node) const {
  std::vector<const CpuKernel*> list;
  auto it = kernels_.find(std::pair<std::string, std::string>(node.domain, node.op));
  if (it == kernels_.end()) return list;
  for (const CpuKernel& kernel : it->second)
    if (kernel.since <= node.opset && node.opset <= kernel.until) list.push_back(&kernel);
  return list;
}

const OpDef* CpuRegistry::internal(const Node& node) const {
  if (node.domain != "epona") return nullptr;
  auto it = internal_.find(node.op);
  return it == internal_.end() ? nullptr : &it->second;
}

const CpuRegistry& CpuRegistry::instance() {
  static const CpuRegistry registry = [] {
    CpuRegistry r;
    register_all_cpu(r);
    return r;
  }();
  return registry;
}

}  // namespace epona::cpu
