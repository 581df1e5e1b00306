#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>

#include "ops/registry.h"

namespace epona {
namespace {

/// CastMap: the values of a map from int64 as a tensor, in the order of the keys (DENSE) or at the place that the key
/// says (SPARSE).
class CastMap final : public Kernel {
 public:
  explicit CastMap(const NodeInfo& info) : max_map_(info.attr("max_map", 1)) {
    const std::string to = info.attr("cast_to", "TO_FLOAT"), form = info.attr("map_form", "DENSE");
    if (to == "TO_FLOAT")
      type_ = DataType::float32;
    else if (to == "TO_STRING")
      type_ = DataType::string;
    else if (to == "TO_INT64")
      type_ = DataType::int64;
    else
      info.refuse(Code::invalid_graph, "cast_to is \"", to, "\"");
    if (form != "DENSE" && form != "SPARSE") info.refuse(Code::invalid_graph, "map_form is \"", form, "\"");
    sparse_ = form == "SPARSE";
    if (sparse_ && (max_map_ < 1 || max_map_ > INT32_MAX)) info.refuse(Code::invalid_graph, "max_map is ", max_map_);
  }
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const RuntimeValue& value = c.value(0);
    if (value.kind != RuntimeValue::Kind::map || value.map->keys.type != DataType::int64)
      c.refuse("the input is not a map with int64 keys");
    const Tensor &keys = value.map->keys, &values = value.map->values;
    const int64_t n = keys.size();
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    const int64_t* key = keys.as<int64_t>();
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key[a] < key[b]; });
    Tensor& y = c.allocate(0, {1, sparse_ ? max_map_ : n}, type_);
    for (int64_t i = 0; i < y.size(); ++i) put(c, y, i, nullptr, 0);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = sparse_ ? key[order[i]] : i;
      if (at < 0 || at >= y.size()) c.refuse("key ", at, " is not below max_map ", max_map_);
      put(c, y, at, &values, order[i]);
    }
  }

 private:
  /// Element `from` of the values as element i of y; without values: zero.
  static void put(const RunContext& c, Tensor& y, int64_t i, const Tensor* values, int64_t from) {
    std::string text;
    float number = 0;
    if (values && values->type == DataType::string) {
      text = values->as<std::string>()[from];
      if (y.type != DataType::string) {
        char* end = nullptr;
        number = std::strtof(text.c_str(), &end);
        if (end == text.c_str()) c.refuse("\"", text, "\" is not a number");
      }
    } else if (values && values->type == DataType::float32) {
      number = values->as<float>()[from];
      if (y.type == DataType::string) text = std::to_string(number);  // six decimals, as onnxruntime writes it
    } else if (values) {
      c.refuse("map values of type ", values->type);
    } else if (y.type == DataType::string) {
      text = "0.f";  // what onnxruntime writes for a missing key
    }
    if (y.type == DataType::string)
      y.as<std::string>()[i] = text;
    else if (y.type == DataType::float32)
      y.as<float>()[i] = number;
    else
      y.as<int64_t>()[i] = number > -9.2e18f && number < 9.2e18f ? static_cast<int64_t>(number) : 0;
  }

  int64_t max_map_;
  bool sparse_;
  DataType type_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(cast_map) {
  r.add({.name = "CastMap", .domain = "ai.onnx.ml", .make = make_kernel<CastMap>, .dynamic = true});
}
