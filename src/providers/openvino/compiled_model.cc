#include <algorithm>
#include <cstring>
#include <string_view>

#include "providers/openvino/kernel.h"
#include "providers/openvino/screen.h"

namespace epona::openvino {
namespace {

/// Name of a port, and whether its dims are all known.
struct PortInfo {
  std::string name;
  std::optional<Shape> shape;
  int element = -1;
};

PortInfo read_port(const Api& api, ov_output_const_port* port) {
  Owned<ov_output_const_port> owned(port, {api.output_const_port_free});
  PortInfo info;
  char* name = nullptr;
  if (api.port_get_any_name(port, &name) == 0 && name) {
    info.name = name;
    api.free(name);
  }
  api.check(api.port_get_element_type(port, &info.element), "asking for a type");
  ov_partial_shape dims{};
  api.check(api.port_get_partial_shape(port, &dims), "asking for a shape");
  if (dims.rank.min == dims.rank.max) {
    Shape shape;
    bool known = true;
    for (int64_t i = 0; i < dims.rank.min && known; ++i) {
      known = dims.dims[i].min == dims.dims[i].max;
      shape.push_back(dims.dims[i].min);
    }
    if (known) info.shape = shape;
  }
  api.partial_shape_free(&dims);
  return info;
}

/// OpenVINO's ports in the order of the graph's values: by name where it kept the name, else by position.
std::vector<size_t> match_ports(const Graph& graph, const std::vector<ValueId>& values,
                                const std::vector<PortInfo>& ports, const char* what, size_t more = 0) {
  if (ports.size() != values.size() + more)
    fail(Code::ep_fail, "OpenVINO made ", ports.size(), " ", what, " of the ", values.size() + more,
         " that the group has");
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string& name = graph.values[values[i]].name;
    order[i] = i;
    if (ports[i].name == name) continue;
    for (size_t p = 0; p < ports.size(); ++p)
      if (ports[p].name == name) order[i] = p;
  }
  return order;
}

/// OpenVINO drops nodes that turn out to do nothing. An output that is then an input passed on is not written into the
/// memory that it was given (2026.4.1): whatever might become one is fetched and copied.
std::vector<char> find_passed_on(const Graph& graph) {
  std::vector<char> found;
  for (ValueId value : graph.outputs) {
    while (value != kNone && graph.values[value].producer != kNone) {
      const Node& node = graph.nodes[graph.values[value].producer];
      ValueId from = kNone;
      bool one = !is_heavy(node);
      for (ValueId input : node.inputs) {
        if (input == kNone || graph.constant(input)) continue;
        one &= from == kNone || from == input;
        from = input;
      }
      value = one ? from : kNone;
    }
    found.push_back(value != kNone);
  }
  return found;
}

/// The CPU device computes int64 in int32, and many operators on integers in float32.
int64_t integer_limit(const Graph& graph) {
  static constexpr std::string_view in_float[] = {
      "Equal",     "Less",       "LessOrEqual", "Greater",         "GreaterOrEqual", "Div",   "Mod",  "ReduceMax",
      "ReduceMin", "ReduceMean", "ReduceSum",   "ReduceSumSquare", "ReduceL1",       "Clip",  "Relu", "PRelu",
      "LeakyRelu", "MatMul",     "Gemm",        "Einsum",          "Mean",           "Round", "TopK", "Resize",
      "MaxPool",   "Sign",       "Softmax",     "GlobalMaxPool"};
  for (const Node& node : graph.nodes) {
    bool to_bool = node.op == "Cast" && graph.values[node.outputs[0]].type.elem == DataType::boolean;
    if (!to_bool && std::find(std::begin(in_float), std::end(in_float), node.op) == std::end(in_float)) continue;
    if (node.inputs[0] == kNone) continue;
    DataType type = graph.values[node.inputs[0]].type.elem;
    if (type == DataType::int64 || type == DataType::int32) return int64_t{1} << 24;
  }
  return INT32_MAX;
}

/// The shape of a tensor. The C API calls a scalar's an invalid parameter (2026.4.1).
Shape shape_of(const Api& api, const ov_tensor* tensor) {
  constexpr ov_status kInvalidParameter = -14;
  ov_shape dims{};
  Shape shape;
  ov_status status = api.tensor_get_shape(tensor, &dims);
  if (status == kInvalidParameter) return shape;
  api.check(status, "asking for a shape");
  for (int64_t i = 0; i < dims.rank; ++i) shape.push_back(dims.dims[i]);
  api.shape_free(&dims);
  return shape;
}

/// Where the plan counts on a dynamic kernel there is no memory yet, even if this compiled model knows the dims.
bool has_memory(const RunContext& c, int o) { return c.out(o).data != nullptr; }

// Tensors without elements need an address all the same.
char nothing[64];

}  // namespace

CompiledModel::CompiledModel(std::shared_ptr<const Core> core, Owned<ov_compiled_model> model, const Graph& graph,
                             std::shared_ptr<const void> memory)
    : core_(std::move(core)), memory_(std::move(memory)), model_(std::move(model)) {
  const Api& api = core_->api();
  size_t inputs = 0, outputs = 0;
  api.check(api.compiled_model_inputs_size(model_.get(), &inputs), "asking for inputs");
  api.check(api.compiled_model_outputs_size(model_.get(), &outputs), "asking for outputs");
  std::vector<PortInfo> in, out;
  for (size_t i = 0; i < inputs; ++i) {
    ov_output_const_port* port = nullptr;
    api.check(api.compiled_model_input_by_index(model_.get(), i, &port), "asking for an input");
    in.push_back(read_port(api, port));
  }
  for (size_t o = 0; o < outputs; ++o) {
    ov_output_const_port* port = nullptr;
    api.check(api.compiled_model_output_by_index(model_.get(), o, &port), "asking for an output");
    out.push_back(read_port(api, port));
  }
  input_port_ = match_ports(graph, graph.inputs, in, "inputs");
  if (core_->may_use_cpu()) {
    int_limit_ = integer_limit(graph);
    guards_.emplace(graph);
  }
  bool flags = guards_ && guards_->inner() > 0;
  output_port_ = match_ports(graph, graph.outputs, out, "outputs", flags ? 1 : 0);
  if (flags)
    while (std::find(output_port_.begin(), output_port_.end(), guard_port_) != output_port_.end()) ++guard_port_;
  may_be_input_ = find_passed_on(graph);
  auto check_type = [&](ValueId id, const PortInfo& port) {
    const Value& value = graph.values[id];
    if (port.element != core_->element(value.type.elem))
      fail(Code::ep_fail, "OpenVINO gives value '", value.name, "' another type than ", value.type.elem);
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i) check_type(graph.inputs[i], in[input_port_[i]]);
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    check_type(graph.outputs[o], out[output_port_[o]]);
    output_types_.push_back(graph.values[graph.outputs[o]].type.elem);
    shapes_.push_back(out[output_port_[o]].shape);
    dynamic_ |= !shapes_.back();
    lends_ |= !shapes_.back() && !may_be_input_[o];
  }
}

std::unique_ptr<Request> CompiledModel::take() const {
  if (auto request = requests_->take()) return request;
  const Api& api = core_->api();
  auto request = std::make_unique<Request>();
  ov_infer_request* made = nullptr;
  api.check(api.compiled_model_create_infer_request(model_.get(), &made), "making an infer request");
  request->request = Owned<ov_infer_request>(made, {api.infer_request_free});
  request->inputs.resize(input_port_.size());
  request->outputs.resize(output_port_.size());
  return request;
}

void CompiledModel::bind(Request::Port& port, const Tensor& tensor, ov_infer_request& request, size_t index,
                         bool input) const {
  const void* data = tensor.size() == 0 ? nothing : tensor.data;
  if (port.tensor && port.data == data && port.shape == tensor.shape) return;
  const Api& api = core_->api();
  ov_tensor* made = nullptr;
  api.check(api.tensor_create_from_host_ptr(core_->element(tensor.type), to_shape(tensor.shape),
                                            const_cast<void*>(data), &made),
            "wrapping a tensor");
  port.tensor = Owned<ov_tensor>(made, {api.tensor_free});
  port.data = data;
  port.shape = tensor.shape;
  api.check(input ? api.infer_request_set_input_tensor_by_index(&request, index, made)
                  : api.infer_request_set_output_tensor_by_index(&request, index, made),
            input ? "setting an input" : "setting an output");
}

Owned<ov_tensor> CompiledModel::output(const ov_infer_request& request, size_t index) const {
  const Api& api = core_->api();
  ov_tensor* found = nullptr;
  api.check(api.infer_request_get_output_tensor_by_index(&request, index, &found), "asking for an output");
  return Owned<ov_tensor>(found, {api.tensor_free});
}

void CompiledModel::copy_out(const ov_infer_request& request, const RunContext& c, int o) const {
  const Api& api = core_->api();
  Owned<ov_tensor> tensor = output(request, output_port_[o]);
  if (!c.wants(o)) return;
  if (dynamic_ || !has_memory(c, o))
    c.set(o, RuntimeValue(copies_->make(output_types_[o], shape_of(api, tensor.get()))));
  Tensor& to = c.out(o);
  if (to.bytes() == 0) return;
  void* data = nullptr;
  api.check(api.tensor_data(tensor.get(), &data), "asking for an address");
  std::memcpy(to.data, data, to.bytes());
}

/// The caller gets the tensor that OpenVINO has written: no copy.
void CompiledModel::lend(const ov_infer_request& request, std::shared_ptr<Requests::Loan> loan, const RunContext& c,
                         int o) const {
  struct Lent {
    std::shared_ptr<Requests::Loan> loan;
    Owned<ov_tensor> tensor;
  };
  const Api& api = core_->api();
  auto lent = std::make_shared<Lent>(Lent{std::move(loan), output(request, output_port_[o])});
  Tensor result;
  result.type = output_types_[o];
  result.shape = shape_of(api, lent->tensor.get());
  if (result.size() > 0) api.check(api.tensor_data(lent->tensor.get(), &result.data), "asking for an address");
  if (!result.data) result.data = nothing;
  result.owner = std::move(lent);
  c.set(o, RuntimeValue(std::move(result)));
}

/// A wrong answer is worse than none: another provider takes over.
void CompiledModel::check_integers(const RunContext& c) const {
  for (int i = 0; i < c.inputs(); ++i) {
    const Tensor& tensor = c.in(i);
    auto check = [&](auto values) {
      for (auto value : values)
        if (value > int_limit_ || value < -int_limit_ - 1)
          fail(Code::ep_fail, "input ", i, " of the group holds ", value,
               "; OpenVINO's CPU device computes integers of more than ", int_limit_ == INT32_MAX ? 32 : 24,
               " bits wrongly here");
    };
    if (tensor.type == DataType::int64) check(tensor.span<int64_t>());
    if (tensor.type == DataType::int32 && int_limit_ < INT32_MAX) check(tensor.span<int32_t>());
  }
}

void CompiledModel::check_flags(const ov_infer_request& request) const {
  const Api& api = core_->api();
  Owned<ov_tensor> tensor = output(request, guard_port_);
  void* data = nullptr;
  api.check(api.tensor_data(tensor.get(), &data), "asking for an address");
  guards_->check_flags(static_cast<const int32_t*>(data));
}

void CompiledModel::run(const RunContext& c) const {
  if (int_limit_ > 0) check_integers(c);
  if (guards_) guards_->check_inputs(c);
  const Api& api = core_->api();
  std::unique_ptr<Request> request = take();
  ov_infer_request& infer = *request->request;
  for (int i = 0; i < c.inputs(); ++i) bind(request->inputs[i], c.in(i), infer, input_port_[i], true);
  for (int o = 0; o < c.outputs(); ++o) {
    if (may_be_input_[o] || !shapes_[o]) continue;
    const Tensor& to = dynamic_ || !has_memory(c, o) ? c.allocate(o, *shapes_[o], output_types_[o]) : c.out(o);
    bind(request->outputs[o], to, infer, output_port_[o], false);
  }
  api.check(api.infer_request_infer(&infer), "running");
  if (guards_ && guards_->inner() > 0) check_flags(infer);
  std::shared_ptr<Requests::Loan> loan = lends_ ? requests_->lend(request) : nullptr;
  for (int o = 0; o < c.outputs(); ++o) {
    bool own = !may_be_input_[o] && !shapes_[o];
    if (own && loan)
      lend(infer, loan, c, o);
    else if (own || may_be_input_[o])
      copy_out(infer, c, o);
  }
  if (request) requests_->give(std::move(request));
}

}  // namespace epona::openvino
