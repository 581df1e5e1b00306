#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ops/kernel.h"
#include "providers/openvino/guard.h"

namespace epona::openvino {

/// The guards of a compiled group at work. Both checks throw: Error(ep_fail), upon which another provider takes over, or
/// the error that it would be there as well.
class GuardSet {
 public:
  explicit GuardSet(const Graph& graph);

  /// How many elements the additional output has; there is none with 0.
  size_t inner() const { return inner_.size(); }
  void check_inputs(const RunContext& c) const;
  void check_flags(const int32_t* flags) const;

 private:
  struct Input {
    Guard guard;
    int value = 0, data = -1;  ///< positions among the inputs
    Shape shape;               ///< of the data, where that is no input
    std::string name;
  };
  static std::optional<std::string> violation_of(const Input& input, const RunContext& c);

  std::vector<Input> inputs_;
  std::vector<std::pair<Code, std::string>> inner_;  ///< what to throw
};

}  // namespace epona::openvino
