#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "model/model.h"
#include "model/tensor_proto.h"

namespace epona {
namespace {

/// Names of a body's captured values: what the enclosing graph calls them now (passes replace values and keep bodies).
using CaptureNames = std::map<ValueId, std::string>;
onnx::GraphProto to_proto(const Graph& graph, const SaveOptions& options, const CaptureNames& captures);

onnx::TensorProto weight_to_proto(const Tensor& tensor, const std::string& name, const SaveOptions& options) {
  if (tensor.type == DataType::string || tensor.bytes() < options.weights_by_address)
    return tensor_to_proto(tensor, name);
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(static_cast<int>(tensor.type));
  for (int64_t dim : tensor.shape) proto.add_dims(dim);
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  auto put = [&](const char* key, const std::string& value) {
    auto& entry = *proto.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  put("location", "*/_ORT_MEM_ADDR_/*");
  put("offset", std::to_string(reinterpret_cast<uintptr_t>(tensor.data)));
  put("length", std::to_string(tensor.bytes()));
  return proto;
}

struct AttributeWriter {
  const Graph& graph;
  const Node& node;
  const SaveOptions& options;
  const CaptureNames& captures;
  onnx::AttributeProto& to;

  onnx::GraphProto body_to_proto(const Graph& body) const {
    CaptureNames names;
    for (auto& [index, inner] : body.captured) {
      ValueId outer = node.captures[static_cast<size_t>(index)];
      auto renamed = captures.find(outer);
      names[inner] = renamed == captures.end() ? graph.values[outer].name : renamed->second;
    }
    return to_proto(body, options, names);
  }
  void operator()(int64_t v) const {
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(v);
  }
  void operator()(float v) const {
    to.set_type(onnx::AttributeProto::FLOAT);
    to.set_f(v);
  }
  void operator()(const std::string& v) const {
    to.set_type(onnx::AttributeProto::STRING);
    to.set_s(v);
  }
  void operator()(const Tensor& v) const {
    to.set_type(onnx::AttributeProto::TENSOR);
    *to.mutable_t() = tensor_to_proto(v, "");
  }
  void operator()(const std::shared_ptr<Graph>& v) const {
    to.set_type(onnx::AttributeProto::GRAPH);
    *to.mutable_g() = body_to_proto(*v);
  }
  void operator()(const std::vector<int64_t>& v) const {
    to.set_type(onnx::AttributeProto::INTS);
    for (int64_t item : v) to.add_ints(item);
  }
  void operator()(const std::vector<float>& v) const {
    to.set_type(onnx::AttributeProto::FLOATS);
    for (float item : v) to.add_floats(item);
  }
  void operator()(const std::vector<std::string>& v) const {
    to.set_type(onnx::AttributeProto::STRINGS);
    for (const auto& item : v) to.add_strings(item);
  }
  void operator()(const std::vector<Tensor>& v) const {
    to.set_type(onnx::AttributeProto::TENSORS);
    for (const auto& item : v) *to.add_tensors() = tensor_to_proto(item, "");
  }
  void operator()(const std::vector<std::shared_ptr<Graph>>& v) const {
    to.set_type(onnx::AttributeProto::GRAPHS);
    for (const auto& item : v) *to.add_graphs() = body_to_proto(*item);
  }
};

onnx::GraphProto to_proto(const Graph& graph, const SaveOptions& options, const CaptureNames& captures) {
  onnx::GraphProto proto;
  auto name_of = [&](ValueId id) {
    if (id == kNone) return std::string();
    auto renamed = captures.find(id);
    return renamed == captures.end() ? graph.values[id].name : renamed->second;
  };
  proto.set_name(graph.name.empty() ? "graph" : graph.name);
  auto put_info = [&](ValueId id, onnx::ValueInfoProto& info) {
    info.set_name(name_of(id));
    if (graph.values[id].type.kind != Type::Kind::unknown) *info.mutable_type() = type_to_proto(graph.values[id].type);
  };
  for (ValueId id : graph.inputs) put_info(id, *proto.add_input());
  for (ValueId id : graph.outputs) put_info(id, *proto.add_output());
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const Value& value = graph.values[id];
    if (value.constant)
      *proto.add_initializer() = weight_to_proto(value.constant, value.name, options);
    else if (options.value_info && value.producer != kNone && value.type.kind != Type::Kind::unknown &&
             !graph.is_output(id))
      put_info(id, *proto.add_value_info());
  }
  for (const Node& node : graph.nodes) {
    if (node.removed) continue;
    auto& out = *proto.add_node();
    out.set_name(node.name);
    out.set_op_type(node.op);
    out.set_domain(node.domain);
    for (ValueId id : node.inputs) out.add_input(name_of(id));
    for (ValueId id : node.outputs) out.add_output(name_of(id));
    for (auto& [key, attribute] : node.attributes) {
      auto& to = *out.add_attribute();
      to.set_name(key);
      std::visit(AttributeWriter{graph, node, options, captures, to}, attribute);
    }
  }
  return proto;
}

}  // namespace

std::string save_model(const Model& model, const Graph& graph, const SaveOptions& options) {
  onnx::ModelProto proto;
  proto.set_ir_version(model.ir_version);
  proto.set_producer_name(model.producer_name);
  proto.set_producer_version(model.producer_version);
  proto.set_domain(model.domain);
  proto.set_model_version(model.model_version);
  proto.set_doc_string(model.description);
  for (auto& [key, value] : model.metadata) {
    auto& entry = *proto.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  auto opsets = graph.opsets;
  for (const Node& node : graph.nodes)
    if (node.domain == "epona") opsets["epona"] = 1;
  for (auto& [domain, version] : opsets) {
    auto& import = *proto.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
  *proto.mutable_graph() = to_proto(graph, options, {});
  std::string bytes;
  if (!proto.SerializeToString(&bytes))
    fail(Code::fail, "the model is over 2 GB and cannot be written as one protobuf file");
  return bytes;
}

void save_model(const Model& model, const Graph& graph, const std::filesystem::path& path) {
  std::string bytes = save_model(model, graph);
  auto refuse = [&](const std::string& cause) {
    fail(Code::invalid_argument, "cannot write the optimized model to ", path.string(), ": ", cause);
  };
  // A file of that name may be the one that weights are still read from: another takes its place.
  std::error_code error;
  std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
  if (error) target = path;
  const bool replace = !std::filesystem::exists(target, error) || std::filesystem::is_regular_file(target, error);
  std::filesystem::path written = target;
  if (replace) written += cat(".", getpid(), ".part");
  {
    std::ofstream file(written, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) {
      std::string cause = std::strerror(errno);
      if (replace) std::filesystem::remove(written, error);
      refuse(cause);
    }
  }
  if (!replace) return;
  std::filesystem::rename(written, target, error);
  if (!error) return;
  std::string cause = error.message();
  std::filesystem::remove(written, error);
  refuse(cause);
}

}  // namespace epona
