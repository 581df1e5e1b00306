#pragma once
#include <map>
#include <string>
#include <vector>

#include "providers/openvino/core.h"
#include "providers/registry.h"

namespace epona::openvino {

OptionSchema schema();

/// A dimension of reshape_input: a number (min = max), a range "a..b", or "?" (0..-1).
using ReshapeDims = std::vector<std::pair<int64_t, int64_t>>;

/// The options of a session in OpenVINO's terms.
struct Config {
  std::string device;  ///< as OpenVINO takes it
  std::vector<Property> properties;
  std::map<std::string, ReshapeDims> reshape;  ///< graph input -> dims
  bool static_shapes = false;                  ///< disable_dynamic_shapes: compile once per input shape
  std::string cache_dir;                       ///< of our own cache; empty where OpenVINO's is used, or none
  bool exact_bytes = false;                    ///< 8-bit products must not saturate: see byte_products.h
  bool keep_nan = false;                       ///< operators in which NaN gets lost are refused
};

/// All of it but the cache's folder, to tell settings apart.
std::string to_text(const Config& config);

/// Throws Error(invalid_argument) naming the option that cannot be understood or does not fit the device.
Config make_config(const OptionValues& options, const ProviderContext& context);

/// "input1[1,3,640..1280,?],input2[4]" -> dims by input.
std::map<std::string, ReshapeDims> parse_reshape(const std::string& text);

/// load_config: {"CPU": {"KEY": "value"}, ...}. Values may be text, numbers or booleans.
std::vector<Property> parse_config_file(const std::string& path);

}  // namespace epona::openvino
