#include "ops/evaluate.h"

#include "graph/aligned.h"
#include "ops/registry.h"

namespace epona {
namespace {

class FoldInfo final : public NodeInfo {
 public:
  FoldInfo(const Graph& graph, const Node& node) : NodeInfo(graph, node) {}
  std::shared_ptr<Subgraph> subgraph(std::string_view) const override {
    refuse(Code::not_implemented, "subgraphs are not folded");
  }
};

}  // namespace

bool evaluate_constant_node(const Graph& graph, const Node& node, size_t max_bytes, std::vector<Tensor>& outputs) {
  const OpDef* def = Registry::instance().find(node.domain, node.op, node.opset);
  if (!def || !def->make || def->random || !node.captures.empty()) return false;
  std::vector<RuntimeValue> values(node.inputs.size() + node.outputs.size());
  std::vector<RuntimeValue*> in, out;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) {
      in.push_back(nullptr);
      continue;
    }
    const Tensor* constant = graph.constant(node.inputs[i]);
    if (!constant) return false;
    values[i] = RuntimeValue(*constant);
    in.push_back(&values[i]);
  }
  for (size_t o = 0; o < node.outputs.size(); ++o) {
    RuntimeValue& value = values[node.inputs.size() + o];
    if (node.outputs[o] == kNone) {
      out.push_back(nullptr);
      continue;
    }
    const Type& type = graph.values[node.outputs[o]].type;
    if (!type.is_tensor()) return false;
    value.kind = RuntimeValue::Kind::tensor;
    value.tensor.type = type.elem;
    out.push_back(&value);
  }
  static ThreadPool pool({.threads = 1});
  RunEnv env;
  env.pool = &pool;
  try {
    KernelPtr kernel = def->make(FoldInfo(graph, node));
    ShapeContext shapes(node, in, out, ~uint64_t{0});
    Tensor scratch;
    if (!def->dynamic) {
      kernel->shapes(shapes);
      for (RuntimeValue* value : out) {
        if (!value) continue;
        if (value->tensor.bytes() > max_bytes) return false;
        value->tensor = Tensor::allocate(value->tensor.type, value->tensor.shape);
      }
      if (shapes.workspace())
        scratch = Tensor::allocate(DataType::uint8, Shape{static_cast<int64_t>(shapes.workspace())});
    }
    for (size_t i = 0; i < node.inputs.size() && !def->shape_only; ++i)
      if (in[i]) in[i]->tensor = aligned(in[i]->tensor);
    kernel->run(RunContext(node, env, in, out, {}, scratch.data));
  } catch (const std::exception&) {
    return false;
  }
  outputs.clear();
  for (RuntimeValue* value : out) outputs.push_back(value ? value->tensor : Tensor());
  return true;
}

}  // namespace epona
