#include "model/from_proto.h"

#include <functional>
#include <set>

namespace epona {
namespace {

/// One graph under construction; lookups go outwards through `parent` and leave a capture behind.
struct Scope {
  Graph* graph;
  Scope* parent = nullptr;
  Node* owner = nullptr;  ///< the enclosing node, whose captures grow
};

class Builder {
 public:
  Builder(const std::map<std::string, int>& opsets, WeightSource& source, std::vector<std::string>& warnings)
      : opsets_(opsets), source_(source), warnings_(warnings) {}

  std::shared_ptr<Graph> build(const onnx::GraphProto& proto, Scope* parent, Node* owner) {
    if (++depth_ > 64) fail(Code::invalid_graph, "subgraphs are nested deeper than 64 levels");
    auto graph = std::make_shared<Graph>();
    graph->name = proto.name();
    for (auto& [domain, version] : opsets_) graph->opsets[domain] = version;
    Scope scope{graph.get(), parent, owner};
    add_inputs(proto, *graph);
    add_initializers(proto, *graph);
    define_outputs(proto, *graph);
    set_types(proto, *graph);
    for (const auto& node : proto.node()) add_node(node, scope);
    for (const auto& output : proto.output()) graph->outputs.push_back(resolve_output(output, scope));
    graph->sort();
    --depth_;
    return graph;
  }

 private:
  void add_inputs(const onnx::GraphProto& proto, Graph& graph) {
    std::set<std::string> initialized;
    for (const auto& tensor : proto.initializer()) initialized.insert(tensor.name());
    for (const auto& tensor : proto.sparse_initializer()) initialized.insert(tensor.values().name());
    for (const auto& input : proto.input()) {
      if (graph.find(input.name()) != kNone)
        fail(Code::fail, "This is an invalid model. Error: Duplicate definition-site for (", input.name(), ").");
      Type type = type_from_proto(input.type());
      if (type.kind == Type::Kind::unknown && depth_ == 1)
        fail(Code::fail, "This is an invalid model. Model input (", input.name(), ") does not have type information.");
      ValueId id = graph.add_value(input.name(), std::move(type));
      graph.values[id].is_input = true;
      graph.inputs.push_back(id);
    }
  }

  void add_constant(Graph& graph, const std::string& name, Tensor tensor) {
    if (name.empty()) fail(Code::invalid_graph, "an initializer has no name");
    ValueId id = graph.find(name);
    if (id == kNone) {
      id = graph.add_value(name);
    } else if (graph.values[id].constant) {
      warnings_.push_back("Duplicate initializer '" + name + "': the last one is used");
    }
    Value& value = graph.values[id];
    if (value.is_input && value.type.is_tensor() && value.type.elem != tensor.type)
      fail(Code::fail, "Type Error: Type (", value.type.to_string(), ") of input (", name,
           ") does not match the type of its initializer (tensor(", tensor.type, "))");
    if (!value.is_input) value.type = Type::tensor(tensor.type, tensor.shape);
    value.constant = std::move(tensor);
  }

  void add_initializers(const onnx::GraphProto& proto, Graph& graph) {
    for (const auto& tensor : proto.initializer()) {
      stop_if_cancelled(source_.cancel);
      add_constant(graph, tensor.name(), tensor_from_proto(tensor, source_));
    }
    for (const auto& tensor : proto.sparse_initializer())
      add_constant(graph, tensor.values().name(), tensor_from_proto(tensor, source_));
  }

  /// Nodes may come in any order, so every output is defined before the first node is read.
  void define_outputs(const onnx::GraphProto& proto, Graph& graph) {
    for (const auto& node : proto.node())
      for (const auto& output : node.output()) {
        if (output.empty()) continue;
        if (graph.find(output) != kNone)
          fail(Code::fail, "This is an invalid model. Error: Duplicate definition of name (", output, ").");
        graph.add_value(output);
      }
  }

  void set_types(const onnx::GraphProto& proto, Graph& graph) {
    for (const auto* list : {&proto.value_info(), &proto.output()})
      for (const auto& info : *list) {
        ValueId id = graph.find(info.name());
        if (id == kNone || graph.values[id].constant || graph.values[id].is_input) continue;
        Type type = type_from_proto(info.type());
        if (type.kind == Type::Kind::unknown) continue;
        Type& known = graph.values[id].type;
        // A declared output may say less than inference found.
        if (known.is_tensor() && known.shape && !type.shape) continue;
        known = std::move(type);
      }
  }

  /// The value of a name as seen from a scope; kNone when nobody defines it.
  ValueId lookup(const std::string& name, Scope& scope) {
    if (ValueId id = scope.graph->find(name); id != kNone) return id;
    if (!scope.parent) return kNone;
    ValueId outer = lookup(name, *scope.parent);
    if (outer == kNone) return kNone;
    // A constant of an enclosing graph is one here too: kernels can then pack it.
    const Value& source = scope.parent->graph->values[outer];
    if (source.constant && !source.is_input) {
      ValueId copy = scope.graph->add_value(name, source.type);
      scope.graph->values[copy].constant = source.constant;
      return copy;
    }
    int slot = static_cast<int>(scope.owner->captures.size());
    for (size_t i = 0; i < scope.owner->captures.size(); ++i)
      if (scope.owner->captures[i] == outer) slot = static_cast<int>(i);
    if (slot == static_cast<int>(scope.owner->captures.size())) scope.owner->captures.push_back(outer);
    ValueId id = scope.graph->add_value(name, scope.parent->graph->values[outer].type);
    scope.graph->values[id].is_capture = true;
    scope.graph->captured.emplace_back(slot, id);
    return id;
  }

  /// A Constant node is an initialiser in other clothes: every pass and kernel then sees it as one.
  bool add_constant_node(const onnx::NodeProto& proto, Graph& graph) {
    if (proto.op_type() != "Constant" || proto.attribute_size() != 1 || proto.output_size() != 1) return false;
    if (!proto.domain().empty() && proto.domain() != "ai.onnx") return false;
    const auto& attribute = proto.attribute(0);
    auto list = [](const auto& field) { return Shape{static_cast<int64_t>(field.size())}; };
    Tensor tensor;
    if (attribute.name() == "value") {
      tensor = tensor_from_proto(attribute.t(), source_);
    } else if (attribute.name() == "sparse_value") {
      tensor = tensor_from_proto(attribute.sparse_tensor(), source_);
    } else if (attribute.name() == "value_int") {
      tensor = Tensor::scalar<int64_t>(attribute.i());
    } else if (attribute.name() == "value_float") {
      tensor = Tensor::scalar<float>(attribute.f());
    } else if (attribute.name() == "value_string") {
      tensor = Tensor::scalar<std::string>(attribute.s());
    } else if (attribute.name() == "value_ints") {
      tensor = Tensor::allocate(DataType::int64, list(attribute.ints()));
      std::copy(attribute.ints().begin(), attribute.ints().end(), tensor.as<int64_t>());
    } else if (attribute.name() == "value_floats") {
      tensor = Tensor::allocate(DataType::float32, list(attribute.floats()));
      std::copy(attribute.floats().begin(), attribute.floats().end(), tensor.as<float>());
    } else if (attribute.name() == "value_strings") {
      tensor = Tensor::allocate(DataType::string, list(attribute.strings()));
      std::copy(attribute.strings().begin(), attribute.strings().end(), tensor.as<std::string>());
    } else {
      return false;
    }
    ValueId id = graph.find(proto.output(0));
    graph.values[id].type = Type::tensor(tensor.type, tensor.shape);
    graph.values[id].constant = std::move(tensor);
    return true;
  }

  void add_node(const onnx::NodeProto& proto, Scope& scope) {
    if (add_constant_node(proto, *scope.graph)) return;
    Node node;
    node.op = proto.op_type();
    node.domain = proto.domain() == "ai.onnx" ? "" : proto.domain();
    node.name = proto.name().empty() ? cat(proto.op_type(), "_", scope.graph->nodes.size()) : proto.name();
    auto version = opsets_.find(node.domain);
    node.opset = version == opsets_.end() ? 1 : version->second;
    for (const auto& input : proto.input()) {
      if (input.empty()) {
        node.inputs.push_back(kNone);
        continue;
      }
      ValueId id = lookup(input, scope);
      if (id == kNone)
        fail(Code::invalid_argument, "Invalid model. Node input '", input,
             "' is not a graph input, initializer, or output of a previous node. It is read by ", describe(node));
      node.inputs.push_back(id);
    }
    for (const auto& output : proto.output())
      node.outputs.push_back(output.empty() ? kNone : scope.graph->find(output));
    for (const auto& attribute : proto.attribute()) add_attribute(attribute, node, scope);
    scope.graph->add_node(std::move(node));
  }

  void add_attribute(const onnx::AttributeProto& proto, Node& node, Scope& scope) {
    auto& to = node.attributes;
    const std::string& key = proto.name();
    switch (proto.type()) {
      case onnx::AttributeProto::INT:
        to[key] = static_cast<int64_t>(proto.i());
        break;
      case onnx::AttributeProto::FLOAT:
        to[key] = proto.f();
        break;
      case onnx::AttributeProto::STRING:
        to[key] = proto.s();
        break;
      case onnx::AttributeProto::INTS:
        to[key] = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
        break;
      case onnx::AttributeProto::FLOATS:
        to[key] = std::vector<float>(proto.floats().begin(), proto.floats().end());
        break;
      case onnx::AttributeProto::STRINGS:
        to[key] = std::vector<std::string>(proto.strings().begin(), proto.strings().end());
        break;
      case onnx::AttributeProto::TENSOR:
        to[key] = tensor_from_proto(proto.t(), source_);
        break;
      case onnx::AttributeProto::SPARSE_TENSOR:
        to[key] = tensor_from_proto(proto.sparse_tensor(), source_);
        break;
      case onnx::AttributeProto::TENSORS: {
        std::vector<Tensor> list;
        for (const auto& tensor : proto.tensors()) list.push_back(tensor_from_proto(tensor, source_));
        to[key] = std::move(list);
        break;
      }
      case onnx::AttributeProto::GRAPH:
        to[key] = build(proto.g(), &scope, &node);
        break;
      case onnx::AttributeProto::GRAPHS: {
        std::vector<std::shared_ptr<Graph>> list;
        for (const auto& graph : proto.graphs()) list.push_back(build(graph, &scope, &node));
        to[key] = std::move(list);
        break;
      }
      case onnx::AttributeProto::TYPE_PROTO: {
        // Only Optional has one; its element type also reaches the kernel through the output's type.
        to[key] = type_from_proto(proto.tp()).to_string();
        break;
      }
      default:
        fail(Code::invalid_graph, describe(node), ": attribute '", key, "' has no valid type (", proto.type(), ")");
    }
  }

  ValueId resolve_output(const onnx::ValueInfoProto& output, Scope& scope) {
    ValueId id = lookup(output.name(), scope);
    if (id == kNone)
      fail(Code::fail, "This is an invalid model. Graph output (", output.name(), ") does not exist in the graph.");
    return id;
  }

  const std::map<std::string, int>& opsets_;
  WeightSource& source_;
  std::vector<std::string>& warnings_;
  int depth_ = 0;
};

}  // namespace

std::shared_ptr<Graph> graph_from_proto(const onnx::GraphProto& proto, const std::map<std::string, int>& opsets,
                                        WeightSource& source, std::vector<std::string>& warnings) {
  return Builder(opsets, source, warnings).build(proto, nullptr, nullptr);
}

}  // namespace epona
