#include "providers/testing/test_provider.h"

#include <atomic>

namespace epona::testing {
namespace {

/// Runs a portable kernel on copies of its operands in the host's memory: only this class may unscramble.
class TestKernel final : public Kernel {
 public:
  TestKernel(KernelPtr portable, TestDevice& device, uint32_t host_inputs, std::string failure, int64_t good_runs)
      : portable_(std::move(portable)),
        device_(device),
        host_inputs_(host_inputs),
        failure_(std::move(failure)),
        good_runs_(good_runs) {}

  void shapes(ShapeContext& c) const override { portable_->shapes(c); }
  bool reads_constant(int input) const override { return portable_->reads_constant(input); }

  void run(const RunContext& c) const override {
    if (!failure_.empty() && good_runs_.fetch_sub(1) <= 0)
      fail(failure_ == "run" ? Code::ep_fail : Code::invalid_argument, "the test provider was told to fail here");
    std::vector<RuntimeValue> in(static_cast<size_t>(c.inputs())), out(static_cast<size_t>(c.outputs()));
    std::vector<RuntimeValue*> inputs, outputs;
    for (int i = 0; i < c.inputs(); ++i) {
      if (c.has(i)) in[i] = host_copy(c, i);
      inputs.push_back(c.has(i) ? &in[i] : nullptr);
    }
    for (int o = 0; o < c.outputs(); ++o) {
      if (c.wants(o)) out[o] = Tensor::allocate(c.out(o).type, c.out(o).shape);
      outputs.push_back(c.wants(o) ? &out[o] : nullptr);
    }
    portable_->run(RunContext(c.node(), c.env(), inputs, outputs, {}, c.workspace()));
    for (int o = 0; o < c.outputs(); ++o)
      if (c.wants(o)) device_.scramble(c.out(o).data, out[o].tensor.data, out[o].tensor.bytes());
  }

 private:
  RuntimeValue host_copy(const RunContext& c, int i) const {
    const Tensor& tensor = c.in(i);
    bool on_host = i < 32 && (host_inputs_ >> i & 1);
    if (on_host || !tensor.data) return tensor;
    Tensor copy = Tensor::allocate(tensor.type, tensor.shape);
    device_.scramble(copy.data, tensor.data, tensor.bytes());
    return copy;
  }

  KernelPtr portable_;
  TestDevice& device_;
  uint32_t host_inputs_;
  std::string failure_;
  mutable std::atomic<int64_t> good_runs_;
};

bool listed(const std::string& list, const std::string& name) {
  return ("," + list + ",").find("," + name + ",") != std::string::npos;
}

/// A tensor of numbers whose type is known.
bool can_hold(const Graph& graph, ValueId id) {
  if (id == kNone) return true;
  const Value& value = graph.values[id];
  DataType type = value.constant ? value.constant.type : value.type.elem;
  return (value.constant || value.type.is_tensor()) && type != DataType::string && type != DataType::undefined;
}

}  // namespace

TestProvider::TestProvider(const char* name, const char* device_type, unsigned char first_key,
                           const OptionValues& options)
    : name_(name),
      options_(options),
      device_(std::make_shared<TestDevice>(name, device_type, static_cast<int>(options.integer("device_id")), first_key,
                                           options.integer("gpu_mem_limit"))) {
  if (options.text("fail") == "start") fail(Code::ep_fail, "the test provider was told to fail when it starts");
}

void TestProvider::change(const std::string& key, const std::string& value) const {
  if (key == "gpu_mem_limit") device_->set_limit(std::stoll(value));
}

bool TestProvider::fails(const char* stage, const Node& node) const {
  return options_.text("fail") == stage && (options_.text("fail_op").empty() || options_.text("fail_op") == node.op);
}

const OpDef* TestProvider::traits(const Node& node) const {
  return Registry::instance().find(node.domain, node.op, node.opset);
}

Claim TestProvider::claim(const Graph& graph) {
  if (options_.text("fail") == "claim") fail(Code::ep_fail, "the test provider was told to fail when it claims");
  Claim claim;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed) continue;
    const OpDef* def = traits(node);
    bool typed = true;
    for (const auto* list : {&node.inputs, &node.outputs})
      for (ValueId value : *list) typed &= can_hold(graph, value);
    if (const std::string& ops = options_.text("ops"); !ops.empty() && !listed(ops, node.op))
      claim.refused[id] = {Reason::user_option, cat("option ops is '", ops, "'")};
    else if (!def || !def->make)
      claim.refused[id] = {Reason::no_kernel, cat("there is no portable kernel for ", node.op)};
    else if (def->dynamic || !node.captures.empty())
      claim.refused[id] = {Reason::dynamic_shape, "the shape of its outputs is known only after it has run"};
    else if (!typed)
      claim.refused[id] = {Reason::type, "it reads or writes something else than a tensor of numbers"};
    else if (def->shape_only)
      claim.refused[id] = {Reason::better_on_cpu, "it reads no elements, only a shape"};
    else
      claim.groups.push_back({id});
  }
  return claim;
}

KernelPtr TestProvider::build(const NodeInfo& info) {
  if (fails("build", info.node())) fail(Code::ep_fail, "the test provider was told to fail when it builds");
  const OpDef* def = traits(info.node());
  if (!def) info.refuse(Code::not_implemented, "no portable kernel");
  std::string failure;
  for (const char* stage : {"run", "kernel_error"})
    if (fails(stage, info.node())) failure = stage;
  return std::make_unique<TestKernel>(def->make(info), *device_, def->shape_inputs, failure,
                                      options_.integer("good_runs"));
}

}  // namespace epona::testing
