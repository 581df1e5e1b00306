#include <algorithm>
#include <array>
#include <string_view>

#include "run/separate.h"
#include "session/check_value.h"
#include "session/rethrow.h"
#include "session/session.h"

namespace epona {
namespace {

constexpr const char* kFix = " Please fix either the inputs/outputs or the model.";

bool kind_matches(const Type& type, const RuntimeValue& value) {
  using Kind = RuntimeValue::Kind;
  switch (type.kind) {
    case Type::Kind::tensor:
    case Type::Kind::sparse:
      return value.kind == Kind::tensor;
    case Type::Kind::sequence:
      return value.kind == Kind::sequence;
    case Type::Kind::map:
      return value.kind == Kind::map;
    case Type::Kind::optional:
      return value.kind == Kind::none || (type.inner && kind_matches(*type.inner, value));
    case Type::Kind::unknown:
      return true;
  }
  return false;
}

const char* kind_text(const RuntimeValue& value) {
  switch (value.kind) {
    case RuntimeValue::Kind::none:
      return "nothing";
    case RuntimeValue::Kind::tensor:
      return "a tensor";
    case RuntimeValue::Kind::sequence:
      return "a sequence";
    case RuntimeValue::Kind::map:
      return "a map";
  }
  return "";
}

void check_shape(const std::string& name, const std::vector<Dim>& dims, const Tensor& tensor) {
  int rank = static_cast<int>(dims.size());
  if (tensor.shape.rank() != rank)
    fail(Code::invalid_argument, "Invalid rank for input: ", name, " Got: ", tensor.shape.rank(), " Expected: ", rank,
         kFix);
  std::string wrong;
  for (int axis = 0; axis < rank; ++axis) {
    const Dim& dim = dims[static_cast<size_t>(axis)];
    if (dim.known() && dim.value != tensor.shape[axis])
      wrong += cat("\n index: ", axis, " Got: ", tensor.shape[axis], " Expected: ", dim.value);
  }
  if (!wrong.empty())
    fail(Code::invalid_argument, "Got invalid dimensions for input: ", name, " for the following indices", wrong, "\n",
         kFix + 1);
}

void check_element_type(DataType expected, const Tensor& tensor, const std::string& name, const std::string& where) {
  if (tensor.type != expected)
    fail(Code::invalid_argument, "Unexpected input data type. Actual: (tensor(", tensor.type, ")) , expected: (tensor(",
         expected, ")) for input '", name, "'", where);
}

/// `where` says which part of the input `value` is: ", item 3".
void check_part(const std::string& name, const Type& type, const RuntimeValue& value, const std::string& where) {
  if (!kind_matches(type, value))
    fail(Code::invalid_argument, "input with name: '", name, "' expected to be of type: ", type.to_string(),
         " but received ", kind_text(value), where);
  switch (type.kind) {
    case Type::Kind::tensor:
    case Type::Kind::sparse:
      check_element_type(type.elem, value.tensor, name, where);
      // The items of sequences may have other shapes than declared, as in onnxruntime.
      if (type.shape && where.empty()) check_shape(name, *type.shape, value.tensor);
      return;
    case Type::Kind::optional:
      if (value.kind != RuntimeValue::Kind::none) check_part(name, *type.inner, value, where);
      return;
    case Type::Kind::sequence:
      for (size_t i = 0; type.inner && i < value.items->size(); ++i)
        check_part(name, *type.inner, (*value.items)[i], cat(where, ", item ", i));
      return;
    case Type::Kind::map:
      check_element_type(type.elem, value.map->keys, name, where + ", the keys");
      if (type.inner && type.inner->is_tensor())
        check_element_type(type.inner->elem, value.map->values, name, where + ", the values");
      if (value.map->keys.shape.rank() != 1 || value.map->values.shape != value.map->keys.shape)
        fail(Code::invalid_argument, "input '", name, "'", where, ": a map has as many keys as values; found ",
             value.map->keys.shape, " and ", value.map->values.shape);
      return;
    case Type::Kind::unknown:
      return;
  }
}

/// "cpu:0;gpu:0": devices whose arenas shall be shrunk after the run. Memory of the CPU is given back anyway.
void check_shrinkage(const RunOptions& options, bool only_cpu) {
  auto found = options.config.find("memory.enable_memory_arena_shrinkage");
  if (found == options.config.end() || !only_cpu) return;
  std::string_view left = found->second;
  while (!left.empty()) {
    std::string_view one = left.substr(0, left.find(';'));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
    if (!one.empty() && one != "cpu:0")
      fail(
          Code::invalid_argument,
          "Did not find an arena based allocator registered for device-id combination in the memory arena shrink list: ",
          one, ". The session runs on the CPU alone: cpu:0");
  }
}

/// What is left on a device is complete when the run is over, unless the caller synchronises himself.
void wait_for_devices(std::span<const RuntimeValue> results, const RunOptions* options) {
  for (const RuntimeValue& value : results) {
    if (!value.tensor.device) continue;
    if (options && options->config.contains("disable_synchronize_execution_providers") &&
        options->config.at("disable_synchronize_execution_providers") == "1")
      return;
    value.tensor.device->synchronize();
  }
}

}  // namespace

void check_value(const IoInfo& info, const RuntimeValue& value) { check_part(info.name, info.type, value, ""); }

void Session::check_feed(size_t input, const RuntimeValue& value) const {
  check_value(input < inputs_.size() ? inputs_[input] : overridable_[input - inputs_.size()], value);
}

void Session::run_positional(std::span<const RuntimeValue> values, std::span<RuntimeValue> results,
                             const RunOptions* options, RunObserver* observer, Interrupter* interrupter) const try {
  if (values.size() < inputs_.size() || values.size() > inputs_.size() + overridable_.size())
    fail(Code::invalid_argument, "the model has ", inputs_.size(), " inputs, ", values.size(), " values were given");
  if (results.size() != outputs_.size())
    fail(Code::invalid_argument, "the model has ", outputs_.size(), " outputs, room for ", results.size(),
         " was given");
  for (size_t i = 0; i < values.size(); ++i)
    if (i < inputs_.size() || values[i].kind != RuntimeValue::Kind::none) check_feed(i, values[i]);
  if (options && !options->config.empty()) check_shrinkage(*options, executable()->providers.size() == 1);
  RunEnv env;
  env.pool = pool_.get();
  env.terminate = options ? &options->terminate : nullptr;
  Profiler::Run profiled(profiler_.get());
  env.observer = observer ? observer : profiled.observer();
  env.interrupter = interrupter;
  bool in_order = values.size() == feed_order_.size();
  for (size_t i = 0; in_order && i < feed_order_.size(); ++i) in_order = feed_order_[i] == static_cast<int>(i);
  auto run = [&](std::span<const RuntimeValue> inputs) {
    try {
      execute(inputs, results, env);
      wait_for_devices(results, options);
    } catch (const Error& error) {
      // The caller gets the error too; the log is for those who only see the service's output.
      bool own = options && options->log_severity >= 0;
      if (std::string_view(error.what()).starts_with("Non-zero status code"))
        log(Severity::error, own ? static_cast<Severity>(options->log_severity) : log_threshold(options_),
            options && !options->tag.empty() ? options->tag : options_.log_id, error.what());
      throw;
    }
  };
  if (in_order) return run(values);
  std::vector<RuntimeValue> fed(feed_order_.size());
  for (size_t i = 0; i < feed_order_.size(); ++i)
    if (static_cast<size_t>(feed_order_[i]) < values.size()) fed[i] = values[static_cast<size_t>(feed_order_[i])];
  run(fed);
} catch (...) {
  rethrow_as_error("the model ran");
}

std::shared_ptr<Device> Session::own_device(const std::shared_ptr<Device>& device) const {
  auto executable = this->executable();
  for (const ActiveProvider& active : executable->providers)
    if (Device* own = active.provider->device(); own && own->same_memory(*device)) return own->shared_from_this();
  return device;
}

std::vector<std::shared_ptr<Device>> Session::input_devices() const {
  std::vector<std::shared_ptr<Device>> devices(inputs_.size());
  auto executable = this->executable();
  const Plan& plan = executable->executor->plan();
  for (const StepPlan& step : plan.steps) {
    if (step.fed_input < 0 || plan.slots[plan.inputs[step.fed_input]].read_on_host) continue;
    auto position = static_cast<size_t>(feed_order_[step.fed_input]);
    if (position < devices.size() && !devices[position])
      devices[position] = plan.memories[step.memory].device->shared_from_this();
  }
  return devices;
}

std::vector<std::shared_ptr<Device>> Session::output_devices() const {
  std::vector<std::shared_ptr<Device>> devices(outputs_.size());
  auto executable = this->executable();
  const Plan& plan = executable->executor->plan();
  for (size_t i = 0; i < devices.size(); ++i)
    if (int source = plan.kept_sources[i]; source >= 0)
      devices[i] = plan.memories[plan.slots[source].memory].device->shared_from_this();
  return devices;
}

void Session::execute(std::span<const RuntimeValue> values, std::span<RuntimeValue> results, const RunEnv& env) const {
  std::array<const void*, 16> few;
  std::vector<const void*> many(results.size() > few.size() ? results.size() : 0);
  std::span<const void*> given(many.empty() ? few.data() : many.data(), results.size());
  for (size_t i = 0; i < results.size(); ++i) given[i] = results[i].tensor.data;
  for (;;) {
    std::shared_ptr<const Executable> executable = this->executable();
    try {
      executable->executor->run(values, {}, results, env);
      return separate_memory(results, given);
    } catch (const ProviderFailure& failure) {
      // The CPU is the last there is; every other provider leaves at most once. Memory for a value may also be missing on a
      // device that no active provider works on.
      bool active = std::any_of(executable->providers.begin(), executable->providers.end(),
                                [&](const ActiveProvider& one) { return failure.provider() == one.def->name; });
      if (!run_fallback_ || !active || failure.provider() == "CPUExecutionProvider") throw;
      leave_provider(failure.provider(), failure.what(), executable);
    }
  }
}

std::vector<RuntimeValue> Session::run(std::span<const std::string> names, std::span<const RuntimeValue> values,
                                       std::span<const std::string> wanted, const RunOptions* options,
                                       RunObserver* observer, std::vector<RuntimeValue> preallocated) const {
  auto find = [](const std::vector<IoInfo>& list, const std::string& name) {
    return static_cast<size_t>(
        std::find_if(list.begin(), list.end(), [&](const IoInfo& info) { return info.name == name; }) - list.begin());
  };
  if (names.size() != values.size())
    fail(Code::invalid_argument, names.size(), " input names for ", values.size(), " values");
  std::vector<RuntimeValue> fed(inputs_.size() + overridable_.size());
  std::vector<char> given(fed.size(), 0);
  for (size_t i = 0; i < names.size(); ++i) {
    size_t at = find(inputs_, names[i]);
    if (at == inputs_.size()) at += find(overridable_, names[i]);
    if (at == fed.size()) {
      std::string known;
      for (const IoInfo& info : inputs_) known += (known.empty() ? "" : ", ") + info.name;
      fail(Code::invalid_argument, "Invalid input name: ", names[i], ". The model's inputs are: ", known);
    }
    fed[at] = values[i];
    given[at] = 1;
  }
  std::string missing;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!given[i] && inputs_[i].type.kind != Type::Kind::optional)
      missing += (missing.empty() ? "'" : ", '") + inputs_[i].name + "'";
  if (!missing.empty()) fail(Code::invalid_argument, "Missing Input: ", missing);
  std::vector<RuntimeValue> results(outputs_.size());
  std::vector<size_t> positions;
  for (size_t i = 0; i < wanted.size(); ++i) {
    size_t at = find(outputs_, wanted[i]);
    if (at == outputs_.size()) fail(Code::invalid_argument, "Invalid output name:", wanted[i]);
    positions.push_back(at);
    if (i < preallocated.size()) results[at] = preallocated[i];
  }
  run_positional(fed, results, options, observer);
  std::vector<RuntimeValue> chosen;
  chosen.reserve(positions.size());
  for (size_t at : positions) chosen.push_back(results[at]);
  return chosen;
}

}  // namespace epona
