#include "providers/cpu/cpu_provider.h"

#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {

const OpDef* CpuProvider::traits(const Node& node) const {
  if (const OpDef* def = CpuRegistry::instance().internal(node)) return def;
  return Registry::instance().find(node.domain, node.op, node.opset);
}

Claim CpuProvider::claim(const Graph& graph) {
  Claim claim;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed) continue;
    if (traits(node))
      claim.groups.push_back({id});
    else
      claim.refused[id] = {Reason::no_kernel,
                           cat("no CPU kernel for ", node.op, " of domain '", node.domain, "' at opset ", node.opset)};
  }
  return claim;
}

KernelPtr CpuProvider::build(const NodeInfo& info) {
  const OpDef* def = traits(info.node());
  KernelPtr portable;
  std::string portable_error, reasons;
  if (def && def->make) {
    try {
      portable = def->make(info);
    } catch (const Error& error) {
      if (error.code() != Code::not_implemented) throw;
      portable_error = error.what();
    }
  }
  for (const CpuKernel* candidate : CpuRegistry::instance().candidates(info.node())) {
    std::string reason;
    if (KernelPtr kernel = candidate->make(info, portable, reason)) return kernel;
    if (!reason.empty()) reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (portable) return portable;
  const Node& node = info.node();
  fail(Code::not_implemented, "Could not find an implementation for ", node.op, "(", node.opset, ") node with name '",
       node.name, "'", portable_error.empty() ? "" : ": ", portable_error, reasons.empty() ? "" : "; ", reasons);
}

}  // namespace epona::cpu
