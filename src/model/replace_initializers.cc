#include "model/replace_initializers.h"

#include <utility>

namespace epona {
namespace {

// What type inference may read, as the dims that a Reshape takes, must be in the proto itself.
constexpr size_t kInline = 4096;

void replace(onnx::TensorProto& proto, const Tensor& tensor, std::vector<std::span<const std::byte>>& blobs) {
  bool same = proto.data_type() == static_cast<int>(tensor.type) && proto.dims_size() == tensor.shape.rank();
  for (int axis = 0; same && axis < proto.dims_size(); ++axis) same = proto.dims(axis) == tensor.shape[axis];
  if (!same) {
    Shape dims;
    for (int64_t dim : proto.dims()) dims.push_back(dim);
    auto type = static_cast<DataType>(proto.data_type());
    bool valid = proto.data_type() > 0 && proto.data_type() <= static_cast<int>(DataType::int2);
    fail(Code::invalid_argument, "the value given for initializer '", proto.name(), "' is tensor(", tensor.type, ") ",
         tensor.shape, "; the model has tensor(", valid ? type_name(type) : "undefined", ") ", dims);
  }
  std::string name = proto.name();
  onnx::TensorProto fresh;
  fresh.set_name(name);
  fresh.set_data_type(proto.data_type());
  *fresh.mutable_dims() = proto.dims();
  if (tensor.type == DataType::string) {
    for (const std::string& text : tensor.span<std::string>()) fresh.add_string_data(text);
  } else if (tensor.bytes() <= kInline) {
    fresh.set_raw_data(tensor.data, tensor.bytes());
  } else {
    fresh.set_doc_string(cat("blob:", blobs.size()));
    blobs.emplace_back(static_cast<const std::byte*>(tensor.data), tensor.bytes());
  }
  proto = std::move(fresh);
}

}  // namespace

std::shared_ptr<void> replace_initializers(onnx::GraphProto& graph, const std::map<std::string, Tensor>& values,
                                           std::vector<std::span<const std::byte>>& blobs, std::shared_ptr<void> owner,
                                           std::vector<std::string>& warnings) {
  if (values.empty()) return owner;
  size_t used = 0;
  for (auto& proto : *graph.mutable_initializer()) {
    auto value = values.find(proto.name());
    if (value == values.end()) continue;
    replace(proto, value->second, blobs);
    ++used;
  }
  if (used < values.size()) {
    for (const auto& [name, value] : values) {
      bool found = false;
      for (const auto& proto : graph.initializer()) found |= proto.name() == name;
      if (!found) warnings.push_back("a value was given for initializer '" + name + "', which the model does not have");
    }
  }
  using Both = std::pair<std::shared_ptr<void>, std::map<std::string, Tensor>>;
  return std::make_shared<Both>(std::move(owner), values);
}

}  // namespace epona
