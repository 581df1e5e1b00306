#include "session/bridge.h"

#include "providers/devices.h"
#include "session/session.h"

namespace epona::bridge {
namespace {

template <class Fn>
auto guarded(Fn&& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const Error& error) {
    throw Failure{static_cast<int>(error.code()), error.what()};
  } catch (const std::exception& error) {
    throw Failure{static_cast<int>(Code::fail), error.what()};
  }
}

RuntimeValue& value_of(const Handle& handle) { return *static_cast<RuntimeValue*>(handle.get()); }
Session& session_of(const Handle& handle) { return *static_cast<Session*>(handle.get()); }
Handle handle_of(RuntimeValue value) { return std::make_shared<RuntimeValue>(std::move(value)); }

std::vector<Info> describe_all(const std::vector<IoInfo>& list) {
  std::vector<Info> infos;
  for (const IoInfo& io : list) {
    Info info{io.name, io.type.to_string(), {}, {}};
    if (io.type.shape)
      for (const Dim& dim : *io.type.shape) {
        info.shape.push_back(dim.known() ? dim.value : -1);
        info.dims.push_back(dim.known() ? std::to_string(dim.value) : dim.symbol.empty() ? "?" : dim.symbol);
      }
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace

Handle make_none() { return handle_of({}); }

Handle make_tensor(int type, void* elements, size_t count, std::span<const int64_t> dims) {
  return guarded([&] {
    if (type <= 0 || type > static_cast<int>(DataType::int2))
      fail(Code::invalid_argument, "a tensor cannot have element type ", type);
    Shape shape(dims);
    if (!elements) return handle_of(Tensor::allocate(static_cast<DataType>(type), shape));
    if (static_cast<int64_t>(count) != shape.size())
      fail(Code::invalid_argument, count, " elements do not fill shape ", shape, ", which has ", shape.size());
    Tensor tensor;
    tensor.type = static_cast<DataType>(type);
    tensor.shape = shape;
    tensor.data = elements;
    return handle_of(std::move(tensor));
  });
}

Handle make_tensor_on(int type, std::span<const int64_t> dims, const std::string& device) {
  return guarded([&] {
    auto found = find_device_named(device);
    if (type <= 0 || type > static_cast<int>(DataType::int2))
      fail(Code::invalid_argument, "a tensor cannot have element type ", type);
    return handle_of(Tensor::allocate(static_cast<DataType>(type), Shape(dims), found.get()));
  });
}

Handle make_wanted_on(const std::string& device) {
  return guarded([&] {
    auto found = find_device_named(device);
    return handle_of(found ? RuntimeValue(Tensor::wanted_on(*found)) : RuntimeValue());
  });
}

std::string device(const Handle& value) {
  const Device* device = value_of(value).tensor.device;
  return device ? device->name() : "cpu";
}

Handle brought_to(const Handle& value, const std::string& device) {
  return guarded([&] {
    const RuntimeValue& inner = value_of(value);
    auto found = find_device_named(device);
    if (inner.kind != RuntimeValue::Kind::tensor) {
      if (found) fail(Code::invalid_argument, "only tensors can be in the memory of ", device);
      return value;
    }
    if (!inner.tensor.data) fail(Code::invalid_argument, "a value that no run has made yet has no elements to copy");
    return handle_of(inner.tensor.in_memory_of(found.get()));
  });
}

void assign(const Handle& to, const Handle& from) {
  guarded([&] {
    const Tensor& source = value_of(from).tensor;
    Tensor& target = value_of(to).tensor;
    if (!source.data || !target.data || source.type != target.type || source.size() != target.size())
      fail(Code::invalid_argument, "assign() copies between tensors of one type and size; found ", source.type,
           source.shape, " for ", target.type, target.shape);
    target.assign(source);
    return 0;
  });
}

int kind(const Handle& value) { return static_cast<int>(value_of(value).kind); }
int type(const Handle& value) { return static_cast<int>(value_of(value).tensor.type); }
std::span<const int64_t> shape(const Handle& value) { return value_of(value).tensor.shape.dims(); }

size_t size(const Handle& value) {
  const RuntimeValue& inner = value_of(value);
  switch (inner.kind) {
    case RuntimeValue::Kind::tensor:
      return static_cast<size_t>(inner.tensor.size());
    case RuntimeValue::Kind::sequence:
      return inner.items->size();
    case RuntimeValue::Kind::map:
      return static_cast<size_t>(inner.map->keys.size());
    case RuntimeValue::Kind::none:
      break;
  }
  return 0;
}

void* data(const Handle& value) { return value_of(value).tensor.data; }

std::vector<Handle> items(const Handle& value) {
  return guarded([&] {
    const RuntimeValue& inner = value_of(value);
    if (inner.kind != RuntimeValue::Kind::sequence) fail(Code::invalid_argument, "only a sequence has items");
    std::vector<Handle> list;
    for (const RuntimeValue& item : *inner.items) list.push_back(handle_of(item));
    return list;
  });
}

std::pair<Handle, Handle> map_entries(const Handle& value) {
  return guarded([&] {
    const RuntimeValue& inner = value_of(value);
    if (inner.kind != RuntimeValue::Kind::map) fail(Code::invalid_argument, "only a map has keys and values");
    return std::pair(handle_of(inner.map->keys), handle_of(inner.map->values));
  });
}

Handle open(const std::string* path, std::span<const std::byte> bytes, const Options& given) {
  return guarded([&]() -> Handle {
    SessionOptions options;
    options.intra_op_threads = given.threads;
    options.optimization_level = static_cast<OptLevel>(given.optimization_level);
    options.log_severity = given.log_severity;
    options.optimized_model_path = given.optimized_model_path;
    options.dim_by_symbol = given.dims;
    options.config = given.config;
    for (auto& [name, entries] : given.providers) options.providers.push_back({name, entries});
    if (path) return std::make_shared<Session>(std::filesystem::path(*path), options);
    return std::make_shared<Session>(bytes, options);
  });
}

std::vector<Info> inputs(const Handle& session) { return describe_all(session_of(session).inputs()); }
std::vector<Info> outputs(const Handle& session) { return describe_all(session_of(session).outputs()); }
std::vector<std::string> providers(const Handle& session) { return session_of(session).providers(); }

std::vector<std::array<std::string, 3>> placement(const Handle& session) {
  std::vector<std::array<std::string, 3>> rows;
  auto executable = session_of(session).executable();
  for (const NodePlacement& node : executable->placement.nodes) rows.push_back({node.name, node.op, node.provider});
  return rows;
}

void run(const Handle& session, std::span<const Handle> inputs, std::span<Handle> outputs) {
  guarded([&] {
    // Calls with few values stay off the heap.
    constexpr size_t kFew = 8;
    RuntimeValue few_in[kFew], few_out[kFew];
    std::vector<RuntimeValue> many_in, many_out;
    std::span<RuntimeValue> in(few_in, std::min(kFew, inputs.size())), out(few_out, std::min(kFew, outputs.size()));
    if (inputs.size() > kFew) {
      many_in.resize(inputs.size());
      in = many_in;
    }
    if (outputs.size() > kFew) {
      many_out.resize(outputs.size());
      out = many_out;
    }
    for (size_t i = 0; i < inputs.size(); ++i) in[i] = value_of(inputs[i]);
    for (size_t i = 0; i < outputs.size(); ++i) out[i] = value_of(outputs[i]);
    session_of(session).run_positional(in, out);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!value_of(outputs[i]).tensor.data) outputs[i] = handle_of(std::move(out[i]));
    return 0;
  });
}

}  // namespace epona::bridge
