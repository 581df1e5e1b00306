#pragma once
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "providers/openvino/api.h"

namespace epona::openvino {

/// A property for one device ("CPU") or for the device string as a whole ("AUTO:GPU,CPU").
struct Property {
  std::string device, key, value;
};

/// What the opened library turned out to do; found out once by reading a tiny model.
struct Abilities {
  std::array<int, 32> element{};    ///< DataType -> OpenVINO's number, which changed between versions; -1: not there
  bool weights_by_address = false;  ///< reads weights where they lie in memory
};

/// Names of operations: those of a model, and those of them that a device supports.
struct DeviceSupport {
  std::set<std::string> present, supported;
};

/// One ov::Core with the settings of a session.
class Core {
 public:
  /// With `exact_bytes` the CPU device computes 8-bit nets in float32; with `keep_nan` it is not given what loses NaN.
  Core(const Api& api, std::string device, const std::vector<Property>& properties, bool exact_bytes, bool keep_nan);

  const Api& api() const { return api_; }
  const std::string& device() const { return device_; }
  /// Whether some of the work may run on the CPU device ("CPU", "AUTO", "HETERO:GPU,CPU").
  bool may_use_cpu() const { return !device_.starts_with("GPU") && !device_.starts_with("NPU"); }
  /// Whether the CPU device is kept from 8-bit products that saturate: by its setting, or by keeping 8-bit nets from it.
  bool exact_bytes() const { return exact_bytes_; }
  bool keep_nan() const { return keep_nan_; }
  bool bytes_in_float() const { return bytes_in_float_; }
  const std::string& device_name() const { return device_name_; }  ///< "AMD EPYC 7R13 Processor"; of several, all
  /// Found out when first asked for, which happens before anything runs.
  const Abilities& abilities() const;
  void set_abilities(const Abilities& known) const { abilities_ = known; }
  int element(DataType type) const { return abilities().element[static_cast<size_t>(type)]; }

  /// Converts a graph, with its inner_guards(); weights stay where they are, so that the graph's constants must outlive what is made of it.
  /// Throws Error(ep_fail) with OpenVINO's message.
  Owned<ov_model> read(const Graph& graph) const;
  Owned<ov_compiled_model> compile(const ov_model& model) const;
  /// A model that was compiled and exported before. The bytes must stay as long as it lives.
  Owned<ov_compiled_model> import(std::span<const std::byte> blob) const;
  /// What the device says to each operation of the model; nothing when this OpenVINO cannot be asked.
  std::optional<DeviceSupport> query(const ov_model& model) const;

 private:
  const Api& api_;
  std::string device_;
  Owned<ov_core> core_;
  std::string device_name_;
  mutable std::optional<Abilities> abilities_;
  bool exact_bytes_ = false, keep_nan_ = false, bytes_in_float_ = false;
};

/// Dims for the C API, which takes them through a pointer to non-const.
inline ov_shape to_shape(const Shape& shape) { return {shape.rank(), const_cast<int64_t*>(shape.begin())}; }

}  // namespace epona::openvino
