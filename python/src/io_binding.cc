#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "binding.h"
#include "session/check_value.h"

namespace epona::python {
namespace {

/// Values bound to a model's inputs and outputs. It knows the model by names and types only, so that it outlives a
/// change of the session's providers.
class IoBinding {
 public:
  explicit IoBinding(const Session& session) : outputs_info_(session.outputs()) {
    for (const auto* list : {&session.inputs(), &session.overridable_initializers()})
      inputs_info_.insert(inputs_info_.end(), list->begin(), list->end());
    required_ = session.inputs().size();
    inputs_.resize(inputs_info_.size());
    given_.resize(inputs_info_.size(), 0);
  }

  const Type& input_type(const std::string& name) const { return inputs_info_[find(inputs_info_, name, "input")].type; }

  void bind_input(const std::string& name, RuntimeValue value) {
    check_idle();
    size_t at = find(inputs_info_, name, "input");
    try {
      check_value(inputs_info_[at], value);
    } catch (const Error& error) {
      throw std::runtime_error(cat("Error when binding input: ", error.what()));
    }
    inputs_[at] = std::move(value);
    given_[at] = 1;
  }

  /// `value` has memory, or is of kind none: the run allocates, on `device` if there is one.
  void bind_output(const std::string& name, RuntimeValue value, std::shared_ptr<Device> device = nullptr) {
    check_idle();
    size_t at = find(outputs_info_, name, "output");
    if (value.kind != RuntimeValue::Kind::none) check_output(outputs_info_[at], value);
    bool fixed = value.kind == RuntimeValue::Kind::tensor && value.tensor.data;
    Output output{at, fixed, std::move(value), std::move(device)};
    auto same = std::find_if(outputs_.begin(), outputs_.end(), [&](const Output& o) { return o.position == at; });
    if (same == outputs_.end())
      outputs_.push_back(std::move(output));
    else
      *same = std::move(output);
  }

  void clear_inputs() {
    check_idle();
    std::fill(inputs_.begin(), inputs_.end(), RuntimeValue());
    std::fill(given_.begin(), given_.end(), 0);
  }
  void clear_outputs() {
    check_idle();
    outputs_.clear();
  }

  static void synchronize(const RuntimeValue& value) {
    if (value.tensor.device) value.tensor.device->synchronize();
  }
  void synchronize_inputs() const {
    for (const RuntimeValue& value : inputs_) synchronize(value);
  }
  void synchronize_outputs() const {
    for (const Output& output : outputs_) synchronize(output.value);
  }

  std::vector<RuntimeValue> output_values() const {
    std::vector<RuntimeValue> values;
    for (const Output& output : outputs_) values.push_back(output.value);
    return values;
  }
  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (const Output& output : outputs_) names.push_back(outputs_info_[output.position].name);
    return names;
  }

  void run(const Session& session, const RunOptions* options) {
    check_idle();
    if (session.outputs().size() != outputs_info_.size() || session.inputs().size() != required_)
      throw nb::value_error("IOBinding must be used with the session that created it.");
    std::string missing;
    for (size_t i = 0; i < required_; ++i)
      if (!given_[i] && inputs_info_[i].type.kind != Type::Kind::optional)
        missing += (missing.empty() ? "" : ", ") + inputs_info_[i].name;
    if (!missing.empty()) throw std::runtime_error(cat("Error in execution: Missing Input: ", missing));
    if (outputs_.empty()) throw std::runtime_error("Error in execution: At least one output should be requested.");
    std::vector<RuntimeValue> results(outputs_info_.size());
    std::vector<Output*> aside;  // their memory overlaps an input's: written when the run is over
    for (Output& output : outputs_) {
      RuntimeValue& result = results[output.position];
      if (!output.fixed) {
        if (output.device) result = Tensor::wanted_on(*output.device);
      } else if (overlaps_input(output.value.tensor)) {
        aside.push_back(&output);
        if (Device* device = output.value.tensor.device) result = Tensor::wanted_on(*device);
      } else {
        result = output.value;
      }
    }
    auto before = session.executable();
    struct Busy {
      bool& flag;
      explicit Busy(bool& f) : flag(f) { flag = true; }
      ~Busy() { flag = false; }
    } busy(running_);
    try {
      run_without_gil(session, inputs_, results, options);
      for (Output* output : aside) copy_into(*output, results[output->position]);
    } catch (const Error& error) {
      throw std::runtime_error(cat("Error in execution: ", error.what()));
    }
    for (Output& output : outputs_)
      if (!output.fixed) output.value = results[output.position];
    warn_of_left_providers(session, *before);
  }

 private:
  struct Output {
    size_t position;
    bool fixed;                      ///< bound to memory
    RuntimeValue value;              ///< that memory, or the last result
    std::shared_ptr<Device> device;  ///< not fixed: where results shall be left; null: in the host's memory
  };

  /// The GIL is not held while a model runs; what is bound must stay as it is meanwhile.
  void check_idle() const {
    if (running_)
      throw std::runtime_error(
          "this IOBinding is in use by a run on another thread: give every thread a binding of its own");
  }

  static size_t find(const std::vector<IoInfo>& list, const std::string& name, const char* what) {
    std::string known;
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].name == name) return i;
      known += (i ? ", '" : "'") + list[i].name + "'";
    }
    throw std::runtime_error(
        cat("Failed to find NodeArg with name: ", name, " in the def list; the model's ", what, "s are ", known));
  }

  static void check_output(const IoInfo& info, const RuntimeValue& value) {
    if (!info.type.is_tensor()) return;
    if (value.kind != RuntimeValue::Kind::tensor || value.tensor.type != info.type.elem)
      throw std::runtime_error(cat("Error when binding output: Unexpected output data type. Actual: (",
                                   value_type(value), ") , expected: (tensor(", info.type.elem, ")) for output '",
                                   info.name, "'"));
    if (info.type.shape && static_cast<int>(info.type.shape->size()) != value.tensor.shape.rank())
      throw std::runtime_error(cat("Error when binding output: Invalid rank for output: ", info.name,
                                   " Got: ", value.tensor.shape.rank(), " Expected: ", info.type.shape->size()));
  }

  bool overlaps_input(const Tensor& output) const {
    auto* begin = static_cast<const std::byte*>(output.data);
    auto* end = begin + output.bytes();
    for (const RuntimeValue& input : inputs_) {
      if (input.kind != RuntimeValue::Kind::tensor || !input.tensor.data) continue;
      const Device *mine = output.device, *theirs = input.tensor.device;
      if (mine != theirs && !(mine && theirs && mine->same_memory(*theirs))) continue;
      auto* from = static_cast<const std::byte*>(input.tensor.data);
      if (from < end && begin < from + input.tensor.bytes()) return true;
    }
    return false;
  }

  void copy_into(Output& output, const RuntimeValue& result) const {
    Tensor& to = output.value.tensor;
    if (result.kind != RuntimeValue::Kind::tensor || result.tensor.type != to.type ||
        !(result.tensor.shape == to.shape))
      fail(Code::invalid_argument, "Got invalid dimensions for output: ", outputs_info_[output.position].name,
           " Got: ", to.shape, " Expected: ", result.tensor.shape);
    to.assign(result.tensor);
  }

  std::vector<IoInfo> inputs_info_, outputs_info_;
  size_t required_ = 0;
  std::vector<RuntimeValue> inputs_;
  std::vector<char> given_;
  std::vector<Output> outputs_;
  bool running_ = false;  ///< guarded by the GIL
};

}  // namespace

void bind_io_binding(nb::module_& m) {
  nb::class_<IoBinding>(m, "SessionIOBinding", "Values bound to the inputs and outputs of a session.")
      .def(nb::init<const Session&>(), nb::arg("session"))
      .def(
          "bind_input",
          [](IoBinding& b, const std::string& name, nb::handle value) {
            b.bind_input(name, value_from_python(value, b.input_type(name), name));
          },
          nb::arg("name"), nb::arg("value").none())
      .def(
          "bind_input_at",
          [](IoBinding& b, const std::string& name, int type, const std::vector<int64_t>& shape, uintptr_t address,
             nb::handle device) { b.bind_input(name, tensor_at(type, shape, address, device_from_python(device))); },
          nb::arg("name"), nb::arg("element_type"), nb::arg("shape"), nb::arg("buffer_ptr"),
          nb::arg("device").none() = nb::none())
      .def(
          "bind_output",
          [](IoBinding& b, const std::string& name, nb::handle device) {
            b.bind_output(name, {}, device_from_python(device));
          },
          nb::arg("name"), nb::arg("device").none() = nb::none())
      .def(
          "bind_output_at",
          [](IoBinding& b, const std::string& name, int type, const std::vector<int64_t>& shape, uintptr_t address,
             nb::handle device) { b.bind_output(name, tensor_at(type, shape, address, device_from_python(device))); },
          nb::arg("name"), nb::arg("element_type"), nb::arg("shape"), nb::arg("buffer_ptr"),
          nb::arg("device").none() = nb::none())
      .def(
          "bind_ortvalue_input",
          [](IoBinding& b, const std::string& name, const RuntimeValue& value) { b.bind_input(name, value); },
          nb::arg("name"), nb::arg("value"))
      .def(
          "bind_ortvalue_output",
          [](IoBinding& b, const std::string& name, const RuntimeValue& value) { b.bind_output(name, value); },
          nb::arg("name"), nb::arg("value"))
      .def("clear_binding_inputs", &IoBinding::clear_inputs)
      .def("clear_binding_outputs", &IoBinding::clear_outputs)
      .def("output_names", &IoBinding::output_names)
      .def("get_outputs", &IoBinding::output_values)
      .def("copy_outputs_to_cpu",
           [](const IoBinding& b) {
             nb::list list;
             for (const RuntimeValue& value : b.output_values()) list.append(value_to_python(value));
             return list;
           })
      .def("synchronize_inputs", &IoBinding::synchronize_inputs)
      .def("synchronize_outputs", &IoBinding::synchronize_outputs)
      .def("run", &IoBinding::run, nb::arg("session"), nb::arg("run_options").none() = nb::none());
}

}  // namespace epona::python
