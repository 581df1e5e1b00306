#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "base/device.h"

namespace epona {

/// Whether a text names a kind of device, here or on another machine: "cpu", "cuda", "dml", "gpu", "npu", ...
bool is_device_type(std::string_view type);

/// The device of a kind with an index, for values that belong to no session: opened once and kept; null for "cpu". Kinds
/// that several vendors share are told apart by `vendor` (a PCI id; 0: the first that is there). Throws Code::not_found,
/// naming the device, what is missing and what helps, where this machine has none.
std::shared_ptr<Device> find_device(std::string_view type, int id, int vendor = 0);

/// The same by name: "cuda:0", "cuda" (index 0), "cpu".
std::shared_ptr<Device> find_device_named(const std::string& name);

}  // namespace epona
