#include "providers/openvino/core.h"

#include <map>
#include <mutex>

#include "model/model.h"
#include "providers/openvino/find.h"
#include "providers/openvino/guard.h"

namespace epona::openvino {
namespace {

constexpr size_t kByAddress = 1024;  // smaller weights are cheaper inside the message

/// ov::Core and ov::Model inside the C API's handles: both are one std::shared_ptr.
template <class Handle>
const std::shared_ptr<const void>& inside(const Handle* handle) {
  return *reinterpret_cast<const std::shared_ptr<const void>*>(handle);
}

std::string to_onnx(const Graph& graph, bool by_address) {
  Model model;
  model.ir_version = 10;
  SaveOptions options;
  options.value_info = false;
  if (by_address) options.weights_by_address = kByAddress;
  return save_model(model, graph, options);
}

Owned<ov_model> read_bytes(const Api& api, const ov_core* core, const std::string& bytes) {
  ov_model* model = nullptr;
  api.check(api.core_read_model_from_memory_buffer(core, bytes.data(), bytes.size(), nullptr, &model),
            "reading the graph");
  return Owned<ov_model>(model, {api.model_free});
}

constexpr DataType kTypes[] = {DataType::float32, DataType::uint8,   DataType::int8,   DataType::uint16,
                               DataType::int16,   DataType::int32,   DataType::int64,  DataType::boolean,
                               DataType::float16, DataType::float64, DataType::uint32, DataType::uint64,
                               DataType::bfloat16};

/// One Identity for each type, and a sum with a weight that is large enough to be passed by address.
Graph test_graph() {
  Graph graph;
  graph.name = "abilities";
  graph.opsets[""] = 17;
  auto add = [&](const char* op, std::vector<ValueId> inputs, ValueId output) {
    Node node;
    node.name = graph.values[output].name;
    node.op = op;
    node.opset = 17;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    graph.add_node(std::move(node));
  };
  for (DataType type : kTypes) {
    ValueId in = graph.add_value(cat("in_", type), Type::tensor(type, Shape{2}));
    ValueId out = graph.add_value(cat("out_", type), Type::tensor(type, Shape{2}));
    graph.values[in].is_input = true;
    graph.inputs.push_back(in);
    graph.outputs.push_back(out);
    add("Identity", {in}, out);
  }
  Shape shape{static_cast<int64_t>(kByAddress)};
  ValueId weight = graph.add_constant("weight", Tensor::allocate(DataType::uint8, shape));
  ValueId sum = graph.add_value("weighted", Type::tensor(DataType::uint8, shape));
  graph.outputs.push_back(sum);
  add("Add", {weight, weight}, sum);
  return graph;
}

Abilities find_out(const Api& api, const ov_core* core) {
  Abilities found;
  found.element.fill(-1);
  Graph graph = test_graph();
  Owned<ov_model> model(nullptr, {api.model_free});
  try {
    model = read_bytes(api, core, to_onnx(graph, true));
    found.weights_by_address = true;
  } catch (const Error&) {
    model = read_bytes(api, core, to_onnx(graph, false));
  }
  for (DataType type : kTypes) {
    ov_output_const_port* port = nullptr;
    std::string name = cat("in_", type);
    if (api.model_const_input_by_name(model.get(), name.c_str(), &port) != 0) continue;
    int number = -1;
    if (api.port_get_element_type(port, &number) == 0) found.element[static_cast<size_t>(type)] = number;
    api.output_const_port_free(port);
  }
  return found;
}

Abilities abilities_of(const Api& api, const ov_core* core) {
  static std::mutex mutex;
  static auto* known = new std::map<const Api*, Abilities>;
  std::lock_guard lock(mutex);
  auto it = known->find(&api);
  if (it == known->end()) it = known->emplace(&api, find_out(api, core)).first;
  return it->second;
}

/// The devices' full names. One that is not there is an error now, not when the first group is compiled. Of several one is enough.
std::string check_devices(const Api& api, const ov_core* core, const std::string& devices) {
  std::string missing, names;
  bool any = false;
  for (const std::string& device : named_devices(devices)) {
    char* name = nullptr;
    ov_status status = api.core_get_property(core, device.c_str(), "FULL_DEVICE_NAME", &name);
    if (status == 0) {
      any = true;
      names += cat(names.empty() ? "" : ", ", name);
      api.free(name);
    } else {
      missing += cat(missing.empty() ? "" : "; ", device, ": ", api.error_text(status));
    }
  }
  if (!any && !missing.empty()) fail(Code::ep_fail, "OpenVINO has no device ", devices, " here (", missing, ")");
  return names;
}

}  // namespace

Core::Core(const Api& api, std::string device, const std::vector<Property>& properties, bool exact_bytes, bool keep_nan)
    : api_(api),
      device_(std::move(device)),
      core_(nullptr, {api.core_free}),
      exact_bytes_(exact_bytes),
      keep_nan_(keep_nan) {
  ov_core* core = nullptr;
  api.check(api.core_create(&core), "starting");
  core_.reset(core);
  device_name_ = check_devices(api, core, device_);
  for (const Property& property : properties) {
    ov_status status =
        api.core_set_property(core, property.device.c_str(), property.key.c_str(), property.value.c_str());
    if (status != 0)
      fail(Code::ep_fail, "OpenVINO does not take ", property.key, "=", property.value, " for device ", property.device,
           ": ", api.error_text(status));
  }
  // Not among the documented properties: where it is not known the nodes are left to others.
  if (exact_bytes) bytes_in_float_ = api.core_set_property(core, "CPU", "LP_TRANSFORMS_MODE", "NO") == 0;
}

const Abilities& Core::abilities() const {
  if (!abilities_) abilities_ = abilities_of(api_, core_.get());
  return *abilities_;
}

Owned<ov_model> Core::read(const Graph& graph) const {
  bool by_address = abilities().weights_by_address;
  if (!may_use_cpu()) return read_bytes(api_, core_.get(), to_onnx(graph, by_address));
  return read_bytes(api_, core_.get(), to_onnx(add_guards(graph, inner_guards(graph)), by_address));
}

Owned<ov_compiled_model> Core::compile(const ov_model& model) const {
  ov_compiled_model* compiled = nullptr;
  api_.check(api_.core_compile_model(core_.get(), &model, device_.c_str(), 0, &compiled), "compiling");
  return Owned<ov_compiled_model>(compiled, {api_.compiled_model_free});
}

Owned<ov_compiled_model> Core::import(std::span<const std::byte> blob) const {
  if (!api_.import_tensor) {
    ov_compiled_model* compiled = nullptr;
    api_.check(api_.core_import_model(core_.get(), reinterpret_cast<const char*>(blob.data()), blob.size(),
                                      device_.c_str(), &compiled),
               "importing a compiled model");
    return Owned<ov_compiled_model>(compiled, {api_.compiled_model_free});
  }
  // ov::CompiledModel: the model, and the plugin that must outlive it.
  struct Imported {
    std::shared_ptr<const void> model, plugin;
    ~Imported() { model.reset(); }
  };
  using Import = Imported (*)(const void* core, const void* tensor, const std::string& device,
                              const std::map<std::string, std::string>& none);
  auto size = static_cast<int64_t>(blob.size());
  ov_tensor* made = nullptr;
  api_.check(api_.tensor_create_from_host_ptr(element(DataType::uint8), {1, &size}, const_cast<std::byte*>(blob.data()),
                                              &made),
             "wrapping a compiled model");
  Owned<ov_tensor> tensor(made, {api_.tensor_free});
  try {
    auto imported = std::shared_ptr<Imported>(new Imported(
        reinterpret_cast<Import>(api_.import_tensor)(inside(core_.get()).get(), inside(made).get(), device_, {})));
    // The C API's handle, which it frees: a structure with one shared_ptr.
    auto* handle = new std::shared_ptr<const void>(std::move(imported));
    return Owned<ov_compiled_model>(reinterpret_cast<ov_compiled_model*>(handle), {api_.compiled_model_free});
  } catch (const std::exception& error) {
    fail(Code::ep_fail, "OpenVINO failed while importing a compiled model: ", error.what());
  }
}

std::optional<DeviceSupport> Core::query(const ov_model& model) const {
  if (!api_.query_model || !api_.get_ops || !api_.get_friendly_name) return std::nullopt;
  // Called as free functions: the hidden result pointer comes first and the object second, as for member functions.
  using Supported = std::map<std::string, std::string>;
  using Query = Supported (*)(const void* core, const std::shared_ptr<const void>& model, const std::string& device,
                              const std::map<std::string, std::string>& none);
  using GetOps = std::vector<std::shared_ptr<const void>> (*)(const void* model);
  using GetName = const std::string& (*)(const void* node);
  try {
    DeviceSupport support;
    for (auto& node : reinterpret_cast<GetOps>(api_.get_ops)(inside(&model).get()))
      support.present.insert(reinterpret_cast<GetName>(api_.get_friendly_name)(node.get()));
    for (auto& [name, device] :
         reinterpret_cast<Query>(api_.query_model)(inside(core_.get()).get(), inside(&model), device_, {}))
      support.supported.insert(name);
    return support;
  } catch (const std::exception& error) {
    fail(Code::ep_fail, "OpenVINO failed while telling what ", device_, " supports: ", error.what());
  }
}

}  // namespace epona::openvino
