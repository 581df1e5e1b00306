#include "providers/devices.h"

#include "binding.h"
#include "providers/testing/test_def.h"
#include "providers/testing/test_device.h"

namespace epona::python {

std::shared_ptr<Device> device_from_python(nb::handle object) {
  if (object.is_none()) return nullptr;
  // Others than a tuple know what they are called.
  nb::object described = nb::isinstance<nb::tuple>(object)
                             ? nb::borrow(object)
                             : nb::module_::import_("epona.devices").attr("describe_device")(object);
  auto parts = nb::cast<nb::tuple>(described);
  auto type = nb::cast<std::string>(parts[0]);
  int id = nb::cast<int>(parts[1]), vendor = parts.size() > 2 ? nb::cast<int>(parts[2]) : 0;
  try {
    return find_device(type, id, vendor);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    throw std::runtime_error(error.what());
  }
}

void bind_devices(nb::module_& m) {
  m.def("_is_device_type", [](const std::string& name) { return is_device_type(name); }, nb::arg("name"));
  m.def(
      "_find_device", [](nb::handle device) { device_from_python(device); }, nb::arg("device"),
      "RuntimeError, saying what is missing, where this machine does not have the device.");
  m.def(
      "_test_device_traffic",
      [](const std::string& name) {
        if (!find_test_provider("TestExecutionProvider")) throw std::runtime_error("there are no devices for tests");
        auto& traffic = testing::traffic_of(name);
        nb::dict counts;
        counts["to_device"] = nb::make_tuple(traffic.to_device.load(), traffic.to_device_bytes.load());
        counts["to_host"] = nb::make_tuple(traffic.to_host.load(), traffic.to_host_bytes.load());
        counts["within"] = nb::make_tuple(traffic.within.load(), traffic.within_bytes.load());
        counts["used"] = traffic.used.load();
        return counts;
      },
      nb::arg("name"), "What devices for tests have copied: (times, bytes), and the bytes in use.");
}

}  // namespace epona::python
