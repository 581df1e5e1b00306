#pragma once
#include "providers/provider.h"

namespace epona::cpu {

/// The CPU: always there, takes every node that has a kernel.
class CpuProvider final : public Provider {
 public:
  const char* name() const override { return "CPUExecutionProvider"; }
  Claim claim(const Graph& graph) override;
  KernelPtr build(const NodeInfo& info) override;
  const OpDef* traits(const Node& node) const override;
};

}  // namespace epona::cpu
