#pragma once
#include <climits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/registry.h"

namespace epona::cpu {

/// A faster implementation of an operator on the CPU. Candidates of one operator are tried in descending `rank`; the
/// first that returns a kernel is used, the portable kernel when none does.
struct CpuKernel {
  const char* name = "";
  const char* domain = "";
  int since = 1, until = INT_MAX;
  int rank = 0;
  /// Builds the kernel, or returns nullptr with the reason ("type double", "group 3 with 5 channels", ...).
  /// `portable` is the reference kernel of the same node (nullptr for operators of domain "epona"): a fast kernel
  /// keeps it to answer shapes(), or to run the cases it does not do itself.
  KernelPtr (*make)(const NodeInfo& info, KernelPtr& portable, std::string& reason) = nullptr;
};

/// Everything the files of this folder register: faster kernels, and the internal operators (domain "epona") that
/// passes put into a graph.
class CpuRegistry {
 public:
  void add(const CpuKernel& kernel);
  void add_internal(const OpDef& def);  ///< def.domain is set to "epona"

  std::vector<const CpuKernel*> candidates(const Node& node) const;
  const OpDef* internal(const Node& node) const;

  static const CpuRegistry& instance();

 private:
  std::map<std::pair<std::string, std::string>, std::vector<CpuKernel>, std::less<>> kernels_;
  std::map<std::string, OpDef, std::less<>> internal_;
};

}  // namespace epona::cpu

/// Opens the registration function of a file of this folder, at file scope; the build calls one per file that has it.
///   EPONA_CPU(softmax) { r.add({.name = "Softmax", .make = make_softmax}); }
#define EPONA_CPU(stem)                 \
  namespace epona::cpu {                \
  void register_##stem(CpuRegistry& r); \
  }                                     \
  void epona::cpu::register_##stem([[maybe_unused]] epona::cpu::CpuRegistry& r)
