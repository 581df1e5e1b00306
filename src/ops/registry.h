#pragma once
#include <climits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ops/kernel.h"

namespace epona {

/// What the runtime has to know of an operator besides its kernel.
struct OpDef {
  const char* name = "";
  const char* domain = "";  ///< "" is ai.onnx
  int since = 1;            ///< first and last opset version that this record is for
  int until = INT_MAX;
  /// Builds the portable kernel. Throws Error(not_implemented) for a type or attribute that it does not do.
  KernelPtr (*make)(const NodeInfo& info) = nullptr;
  /// Bit i: shapes() reads the *elements* of input i (Reshape's shape, Slice's starts, ...).
  uint32_t shape_inputs = 0;
  /// Output shapes are known only after run(), which calls RunContext::allocate or set for every wanted output.
  /// Also for any operator that reads or makes sequences, maps or optionals.
  bool dynamic = false;
  /// Output 0 is input `alias` under another shape: no kernel call, the two share memory.
  int alias = -1;
  /// Bit i: output 0 may be written over input i when both have the same number of bytes (element by element ops).
  uint32_t inplace = 0;
  /// Gives another result each time: never folded, never merged.
  bool random = false;
  /// run() reads only the dims of its inputs (Shape, Size): evaluated when a frame is built.
  bool shape_only = false;
};

/// All operators that have a portable kernel. Filled once by the generated register_all_ops().
class Registry {
 public:
  void add(const OpDef& def);
  /// The record for an operator at an opset version; nullptr when there is none.
  const OpDef* find(std::string_view domain, std::string_view name, int opset) const;
  std::vector<const OpDef*> all() const;

  static const Registry& instance();

 private:
  std::map<std::pair<std::string, std::string>, std::vector<OpDef>, std::less<>> defs_;
};

/// Makes an OpDef::make from a kernel class with a constructor from NodeInfo.
template <class K>
KernelPtr make_kernel(const NodeInfo& info) {
  return std::make_unique<K>(info);
}

}  // namespace epona

/// Opens the registration function of an operator file, at file scope after the namespaces are closed. The build calls
/// one per file, by the file's stem; a file may add several records (opset ranges, one-line families):
///   EPONA_OPS(celu) { r.add({.name = "Celu", .since = 12, .make = make_kernel<Celu>, .inplace = 1}); }
#define EPONA_OPS(stem)              \
  namespace epona::ops {             \
  void register_##stem(Registry& r); \
  }                                  \
  void epona::ops::register_##stem([[maybe_unused]] Registry& r)
