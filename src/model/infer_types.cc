#include <functional>
#include <map>
#include <string_view>

#include "base/error.h"
#include "model/check.h"
#include "onnx/shape_inference/implementation.h"

namespace epona {
namespace {

using Declared = std::map<std::string, onnx::TypeProto>;

/// Calls fn for a graph and every graph inside it, outermost first, always in the same order.
void for_each_graph(onnx::GraphProto& graph, const std::function<void(onnx::GraphProto&)>& fn) {
  fn(graph);
  for (auto& node : *graph.mutable_node())
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) for_each_graph(*attribute.mutable_g(), fn);
      for (auto& body : *attribute.mutable_graphs()) for_each_graph(body, fn);
    }
}

/// Takes the declared types of computed values out of a graph, so that inference starts from inputs and constants: a
/// kernel then never gets memory of another type than it computes, whatever a model declares.
Declared take_declarations(onnx::GraphProto& graph) {
  Declared declared;
  for (auto* list : {graph.mutable_value_info(), graph.mutable_output()})
    for (auto& info : *list)
      if (info.has_type() && info.type().value_case() != onnx::TypeProto::VALUE_NOT_SET) {
        declared[info.name()] = info.type();
        if (list == graph.mutable_output()) info.clear_type();
      }
  graph.clear_value_info();
  return declared;
}

int element_of(const onnx::TypeProto& type) { return type.has_tensor_type() ? type.tensor_type().elem_type() : 0; }

std::string text_of(const onnx::TypeProto& type) {
  return type.has_tensor_type() ? onnx::Utils::DataTypeUtils::ToDataTypeString(element_of(type)) : "another kind";
}

/// Compares declarations with what was inferred; puts back those that say more. Returns how many values had no inferred
/// type and got their declared one.
int restore_declarations(onnx::GraphProto& graph, const Declared& declared) {
  std::map<std::string, onnx::TypeProto*> inferred;
  for (auto* list : {graph.mutable_value_info(), graph.mutable_output()})
    for (auto& info : *list)
      if (info.has_type() && info.type().value_case() != onnx::TypeProto::VALUE_NOT_SET)
        inferred[info.name()] = info.mutable_type();
  std::map<std::string, std::string> producers;
  for (const auto& node : graph.node())
    for (const auto& output : node.output()) producers[output] = node.name().empty() ? node.op_type() : node.name();
  int added = 0;
  for (auto& [name, type] : declared) {
    auto found = inferred.find(name);
    if (found == inferred.end()) {
      auto* info = graph.add_value_info();
      info->set_name(name);
      *info->mutable_type() = type;
      added += producers.contains(name);
      continue;
    }
    onnx::TypeProto& known = *found->second;
    if (known.value_case() != type.value_case() || element_of(known) != element_of(type)) {
      if (!producers.contains(name)) continue;
      fail(Code::fail, "Type Error: Type (tensor(", text_of(type), ")) of output arg (", name, ") of node (",
           producers[name], ") does not match expected type (tensor(", text_of(known), ")).");
    }
    if (known.has_tensor_type() && !known.tensor_type().has_shape() && type.tensor_type().has_shape())
      *known.mutable_tensor_type()->mutable_shape() = type.tensor_type().shape();
  }
  return added;
}

void infer(onnx::ModelProto& model) {
  const onnx::ShapeInferenceOptions lenient(/*check_type=*/true, /*strict_mode=*/0, /*data_prop=*/true);
  try {
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), lenient);
  } catch (const std::exception& error) {
    // A type that the operator does not take makes the graph invalid; other contradictions have the general code.
    bool wrong_type = std::string_view(error.what()).find("has unsupported type") != std::string_view::npos;
    fail(wrong_type ? Code::invalid_graph : Code::fail, "This is an invalid model. Type Error: ", error.what());
  }
}

}  // namespace

void infer_types(onnx::ModelProto& model) {
  std::vector<Declared> declared;
  for_each_graph(*model.mutable_graph(),
                 [&](onnx::GraphProto& graph) { declared.push_back(take_declarations(graph)); });
  // A value that nothing can be inferred for may have a declaration, from which more follows: a few rounds.
  for (int round = 0; round < 4; ++round) {
    infer(model);
    size_t at = 0;
    int added = 0;
    for_each_graph(*model.mutable_graph(),
                   [&](onnx::GraphProto& graph) { added += restore_declarations(graph, declared[at++]); });
    if (added == 0) return;
  }
}

}  // namespace epona
