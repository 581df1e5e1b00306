#include "ops/kernel.h"

namespace epona {
namespace {

const Type kUnknown;

template <class T>
const T* find(const NodeInfo& info, std::string_view key, const char* wanted) {
  auto it = info.node().attributes.find(key);
  if (it == info.node().attributes.end()) return nullptr;
  if (auto* value = std::get_if<T>(&it->second)) return value;
  info.refuse(Code::invalid_graph, "attribute '", key, "' should be ", wanted);
}

}  // namespace

const Type& NodeInfo::in(int input) const { return has(input) ? graph_->values[node_->inputs[input]].type : kUnknown; }
const Type& NodeInfo::out(int output) const {
  return wants(output) ? graph_->values[node_->outputs[output]].type : kUnknown;
}

int64_t NodeInfo::attr(std::string_view key, int64_t otherwise) const {
  auto* value = find<int64_t>(*this, key, "an integer");
  return value ? *value : otherwise;
}
float NodeInfo::attr(std::string_view key, float otherwise) const {
  auto* value = find<float>(*this, key, "a float");
  return value ? *value : otherwise;
}
std::string NodeInfo::attr(std::string_view key, const char* otherwise) const {
  auto* value = find<std::string>(*this, key, "a string");
  return value ? *value : otherwise;
}
std::vector<int64_t> NodeInfo::ints(std::string_view key, std::vector<int64_t> otherwise) const {
  auto* value = find<std::vector<int64_t>>(*this, key, "a list of integers");
  if (value) return *value;
  return otherwise;
}
std::vector<float> NodeInfo::floats(std::string_view key, std::vector<float> otherwise) const {
  auto* value = find<std::vector<float>>(*this, key, "a list of floats");
  if (value) return *value;
  return otherwise;
}
std::vector<std::string> NodeInfo::strings(std::string_view key) const {
  auto* value = find<std::vector<std::string>>(*this, key, "a list of strings");
  return value ? *value : std::vector<std::string>();
}
const Tensor* NodeInfo::tensor_attr(std::string_view key) const { return find<Tensor>(*this, key, "a tensor"); }

std::vector<int64_t> ShapeContext::ints(int i) const {
  const Tensor* tensor = value(i);
  if (!tensor) refuse("input ", i, " is needed and its elements are not known");
  return tensor->ints();
}

Tensor& RunContext::allocate(int o, Shape shape, DataType type) const {
  if (!wants(o)) refuse("output ", o, " is not wanted");
  RuntimeValue& value = *outputs_[o];
  DataType element = value.tensor.type != DataType::undefined ? value.tensor.type : type;
  value.kind = RuntimeValue::Kind::tensor;
  value.tensor = Tensor::allocate(element, std::move(shape));
  return value.tensor;
}

}  // namespace epona
