#include <cstring>

#include "ops/ml/lookup.h"
#include "ops/registry.h"

namespace epona {
namespace {

Tensor strings_tensor(const std::vector<std::string>& list) {
  return Tensor::of<std::string>(Shape{static_cast<int64_t>(list.size())}, list);
}
Tensor ints_tensor(const std::vector<int64_t>& list) {
  return Tensor::of<int64_t>(Shape{static_cast<int64_t>(list.size())}, list);
}

/// LabelEncoder and CategoryMapper: every element is looked up among the keys and replaced by the value there, or by
/// the default.
class LabelEncoder final : public Kernel {
 public:
  explicit LabelEncoder(const NodeInfo& info) {
    Tensor keys;
    const bool strings_in = info.in_type(0) == DataType::string;
    if (info.node().op == "CategoryMapper") {
      Tensor names = strings_tensor(info.strings("cats_strings")), numbers = ints_tensor(info.ints("cats_int64s"));
      keys = strings_in ? names : numbers;
      values_ = strings_in ? numbers : names;
    } else if (info.opset() == 1) {
      Tensor names = strings_tensor(info.strings("classes_strings"));
      std::vector<int64_t> positions(static_cast<size_t>(names.size()));
      for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
      Tensor numbers = ints_tensor(positions);
      keys = strings_in ? names : numbers;
      values_ = strings_in ? numbers : names;
    } else {
      keys = list(info, "keys");
      values_ = list(info, "values");
    }
    if (keys.size() != values_.size())
      info.refuse(Code::invalid_graph, keys.size(), " keys but ", values_.size(), " values");
    if (keys.type != info.in_type(0))
      info.refuse(Code::invalid_graph, "keys are of type ", keys.type, " but the input is of ", info.in_type(0));
    lookup_.add(keys);
    default_ = default_of(info, values_.type);
  }

  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }

  void run(const RunContext& c) const override {
    Tensor& y = c.out(0);
    if (y.type == DataType::string) {
      lookup_.each(c.in(0), [&](int64_t i, int64_t at) {
        y.as<std::string>()[i] = at < 0 ? *default_.as<std::string>() : values_.as<std::string>()[at];
      });
      return;
    }
    const size_t width = type_bits(y.type) / 8;
    lookup_.each(c.in(0), [&](int64_t i, int64_t at) {
      const char* from = at < 0 ? default_.as<char>() : values_.as<char>() + static_cast<size_t>(at) * width;
      std::memcpy(y.as<char>() + static_cast<size_t>(i) * width, from, width);
    });
  }

 private:
  static Tensor list(const NodeInfo& info, const std::string& key) {
    if (const Tensor* tensor = info.tensor_attr(key + "_tensor")) {
      if (tensor->type != DataType::string && !contains(Lookup::Numbers{}, tensor->type))
        info.refuse(Code::not_implemented, key, "_tensor of type ", tensor->type);
      return *tensor;
    }
    if (info.has_attr(key + "_strings")) return strings_tensor(info.strings(key + "_strings"));
    if (info.has_attr(key + "_int64s")) return ints_tensor(info.ints(key + "_int64s"));
    if (info.has_attr(key + "_floats")) {
      const auto floats = info.floats(key + "_floats");
      return Tensor::of<float>(Shape{static_cast<int64_t>(floats.size())}, floats);
    }
    info.refuse(Code::invalid_graph, "attribute ", key, "_* is missing");
  }

  static Tensor default_of(const NodeInfo& info, DataType type) {
    if (const Tensor* tensor = info.tensor_attr("default_tensor")) {
      if (tensor->type != type || tensor->size() != 1)
        info.refuse(Code::invalid_graph, "default_tensor is ", tensor->type, tensor->shape, "; expected one ", type);
      return *tensor;
    }
    switch (type) {
      case DataType::string:
        return Tensor::scalar<std::string>(info.attr("default_string", "_Unused"));
      case DataType::int64:
        return Tensor::scalar<int64_t>(info.attr("default_int64", -1));
      case DataType::float32:
        return Tensor::scalar<float>(info.attr("default_float", -0.0f));
      case DataType::float64:
        return Tensor::scalar<double>(-0.0);
      case DataType::int32:
        return Tensor::scalar<int32_t>(-1);
      case DataType::int16:
        return Tensor::scalar<int16_t>(-1);
      default:
        info.refuse(Code::not_implemented, "values of type ", type);
    }
  }

  Lookup lookup_;
  Tensor values_, default_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(label_encoder) {
  r.add({.name = "LabelEncoder", .domain = "ai.onnx.ml", .make = make_kernel<LabelEncoder>});
  r.add({.name = "CategoryMapper", .domain = "ai.onnx.ml", .make = make_kernel<LabelEncoder>});
}
