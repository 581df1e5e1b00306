#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/device.h"
#include "graph/graph.h"
#include "ops/kernel.h"
#include "ops/registry.h"

namespace epona {

/// Why a provider did not take a node.
enum class Reason {
  none,
  no_kernel,
  type,
  opset,
  attribute,
  dynamic_shape,
  too_small,
  island,
  memory_budget,
  user_option,
  better_on_cpu
};
const char* reason_name(Reason reason);

/// A reason code with its sentence.
struct Refusal {
  Reason reason = Reason::none;
  std::string text;
};

/// What a provider answers for one graph: groups of nodes that it takes, and a refusal for every node it does not.
struct Claim {
  std::vector<std::vector<NodeId>> groups;
  std::map<NodeId, Refusal> refused;
};

/// A group of nodes made into one kernel.
struct Compiled {
  KernelPtr kernel;
  OpDef traits;  ///< as the planner needs them; dynamic when output shapes are known only after running
};

/// One hardware path. Stateless towards runs: a session owns its providers, kernels own what they need.
class Provider {
 public:
  virtual ~Provider() = default;
  virtual const char* name() const = 0;
  /// Which nodes of the graph this provider runs. Called once per graph and subgraph.
  virtual Claim claim(const Graph& graph) = 0;
  /// A kernel for one claimed node. Throws Error(not_implemented) when there is none after all.
  virtual KernelPtr build(const NodeInfo& info) = 0;
  /// The operator's traits as the planner needs them (shape inputs, aliasing, in-place); nullptr when unknown.
  virtual const OpDef* traits(const Node& node) const = 0;
  /// The memory that its kernels read and write, owned by the provider; null when that is the host's. Kernels of a device
  /// find inputs there and write outputs there, except inputs whose elements shapes() reads (OpDef::shape_inputs): those
  /// are the host's. Operators whose output shapes are known only after running are not for devices.
  virtual Device* device() { return nullptr; }

  /// A compiling provider claims groups of nodes, before the passes that only the CPU understands, and is given each as
  /// a graph of its own: inputs are what the group reads, outputs what is read of it.
  virtual bool compiles() const { return false; }
  /// Throws when the group cannot be compiled after all.
  virtual Compiled compile(const Graph& group) {
    (void)group;
    fail(Code::not_implemented, name(), " compiles no groups");
  }
  /// After compile() failed: what of that group it would still take. Nodes that it does not name are refused with the
  /// error.
  virtual Claim reclaim(const Graph& group) {
    (void)group;
    return {};
  }

  /// Whether an option that the schema marks live can be changed in place, while runs go on. Otherwise the session is
  /// planned anew with the new value.
  virtual bool can_change(const std::string& key) const {
    (void)key;
    return false;
  }
  virtual void change(const std::string& key, const std::string& value) const {
    (void)key;
    (void)value;
  }
};

}  // namespace epona
