#include <cstring>

#include "ops/ml/lookup.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// DictVectorizer: the values of a map at the places of their keys in the vocabulary, zero elsewhere. Other keys are
/// left out, as the peers do.
class DictVectorizer final : public Kernel {
 public:
  explicit DictVectorizer(const NodeInfo& info) {
    const auto strings = info.strings("string_vocabulary");
    const auto ints = info.ints("int64_vocabulary");
    if (strings.empty() == ints.empty())
      info.refuse(Code::invalid_graph, "one of string_vocabulary and int64_vocabulary should be given");
    lookup_.add(strings);
    lookup_.add(ints);
    size_ = static_cast<int64_t>(strings.size() + ints.size());
  }
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const RuntimeValue& value = c.value(0);
    if (value.kind != RuntimeValue::Kind::map) c.refuse("the input is not a map");
    const Tensor& values = value.map->values;
    Tensor& y = c.allocate(0, {1, size_}, values.type);
    if (y.type != DataType::string) std::memset(y.data, 0, y.bytes());
    const size_t width = type_bits(y.type) / 8;
    const bool known = lookup_.each(value.map->keys, [&](int64_t i, int64_t at) {
      if (at < 0) return;
      if (y.type == DataType::string)
        y.as<std::string>()[at] = values.as<std::string>()[i];
      else
        std::memcpy(y.as<char>() + static_cast<size_t>(at) * width, values.as<char>() + static_cast<size_t>(i) * width,
                    width);
    });
    if (!known) c.refuse("map keys of type ", value.map->keys.type);
  }

 private:
  Lookup lookup_;
  int64_t size_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(dict_vectorizer) {
  r.add({.name = "DictVectorizer", .domain = "ai.onnx.ml", .make = make_kernel<DictVectorizer>, .dynamic = true});
}
