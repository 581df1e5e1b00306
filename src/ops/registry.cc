#include "ops/registry.h"

#include "ops/register_all_ops.h"

namespace epona {

void Registry::add(const OpDef& def) { defs_[{def.domain, def.name}].push_back(def); }

const OpDef* Registry::find(std::string_view domain, std::string_view name, int opset) const {
  if (domain == "ai.onnx") domain = "";
  auto it = defs_.find(std::pair<std::string, std::string>(domain, name));
  if (it == defs_.end()) return nullptr;
  for (const OpDef& def : it->second)
    if (def.since <= opset && opset <= def.until) return &def;
  return nullptr;
}

std::vector<const OpDef*> Registry::all() const {
  std::vector<const OpDef*> list;
  for (auto& [key, defs] : defs_)
    for (const OpDef& def : defs) list.push_back(&def);
  return list;
}

const Registry& Registry::instance() {
  static const Registry registry = [] {
    Registry r;
    ops::register_all_ops(r);
    return r;
  }();
  return registry;
}

}  // namespace epona
