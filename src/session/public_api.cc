#include <epona/epona.h>

#include <algorithm>

#include "session/bridge.h"

namespace epona {
inline namespace v1 {
namespace {

template <class Fn>
auto translated(Fn&& fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (const bridge::Failure& failure) {
    throw Error(failure.code, failure.message);
  }
}

std::vector<ValueInfo> infos(std::vector<bridge::Info> list) {
  std::vector<ValueInfo> result;
  result.reserve(list.size());
  for (auto& info : list)
    result.push_back({std::move(info.name), std::move(info.type), std::move(info.shape), std::move(info.dims)});
  return result;
}

}  // namespace

Error::~Error() = default;

struct Value::Impl {
  bridge::Handle handle;
};

namespace {
std::shared_ptr<Value::Impl> wrap(bridge::Handle handle) {
  return std::make_shared<Value::Impl>(Value::Impl{std::move(handle)});
}
}  // namespace

Value::Value() : impl_(wrap(bridge::make_none())) {}

Value Value::allocate(ElementType type, std::span<const int64_t> shape) {
  Value value;
  value.impl_ = wrap(translated([&] { return bridge::make_tensor(static_cast<int>(type), nullptr, 0, shape); }));
  return value;
}

Value Value::view(ElementType type, void* elements, size_t count, std::span<const int64_t> shape) {
  static char nothing;  // an empty span may have no address
  Value value;
  value.impl_ = wrap(translated(
      [&] { return bridge::make_tensor(static_cast<int>(type), elements ? elements : &nothing, count, shape); }));
  return value;
}

Value Value::allocate(ElementType type, std::span<const int64_t> shape, const std::string& device) {
  Value value;
  value.impl_ = wrap(translated([&] { return bridge::make_tensor_on(static_cast<int>(type), shape, device); }));
  return value;
}

Value Value::wanted_on(const std::string& device) {
  Value value;
  value.impl_ = wrap(translated([&] { return bridge::make_wanted_on(device); }));
  return value;
}

std::string Value::device() const { return bridge::device(impl_->handle); }

Value Value::to(const std::string& device) const {
  Value value;
  value.impl_ = wrap(translated([&] { return bridge::brought_to(impl_->handle, device); }));
  return value;
}

void Value::assign(const Value& from) {
  translated([&] {
    bridge::assign(impl_->handle, from.impl_->handle);
    return 0;
  });
}

Value::Kind Value::kind() const { return static_cast<Kind>(bridge::kind(impl_->handle)); }
ElementType Value::type() const { return static_cast<ElementType>(bridge::type(impl_->handle)); }
std::span<const int64_t> Value::shape() const { return bridge::shape(impl_->handle); }
size_t Value::size() const { return bridge::size(impl_->handle); }
const void* Value::raw() const { return bridge::data(impl_->handle); }

void* Value::checked_data(ElementType wanted) const {
  if (device() != "cpu")
    throw Error(2, "data<T>() of a tensor in the memory of " + device() + ": bring it to(\"cpu\") first");
  bool sixteen = wanted == ElementType::uint16 && (type() == ElementType::float16 || type() == ElementType::bfloat16);
  if (kind() != Kind::tensor || (type() != wanted && !sixteen))
    throw Error(2, "data<T>() of another element type: the tensor has type " +
                       std::to_string(static_cast<int>(type())) + ", asked for " +
                       std::to_string(static_cast<int>(wanted)));
  return bridge::data(impl_->handle);
}

std::vector<Value> Value::items() const {
  std::vector<Value> list;
  for (auto& handle : translated([&] { return bridge::items(impl_->handle); })) {
    Value item;
    item.impl_->handle = handle;
    list.push_back(item);
  }
  return list;
}

Value Value::keys() const {
  Value value;
  value.impl_->handle = translated([&] { return bridge::map_entries(impl_->handle); }).first;
  return value;
}

Value Value::values() const {
  Value value;
  value.impl_->handle = translated([&] { return bridge::map_entries(impl_->handle); }).second;
  return value;
}

struct Session::Impl {
  bridge::Handle handle;
  std::vector<ValueInfo> inputs, outputs;

  Impl(const std::string* path, std::span<const std::byte> bytes, const SessionOptions& options) {
    bridge::Options inner{
        options.threads, options.optimization_level, options.log_severity, options.optimized_model_path, options.dims,
        options.config,  options.providers};
    handle = translated([&] { return bridge::open(path, bytes, inner); });
    inputs = infos(bridge::inputs(handle));
    outputs = infos(bridge::outputs(handle));
  }
};

Session::Session(const std::filesystem::path& model, const SessionOptions& options) {
  std::string path = model.string();
  impl_ = std::make_unique<Impl>(&path, std::span<const std::byte>(), options);
}
Session::Session(std::span<const std::byte> model, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(nullptr, model, options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const std::vector<ValueInfo>& Session::inputs() const { return impl_->inputs; }
const std::vector<ValueInfo>& Session::outputs() const { return impl_->outputs; }
std::vector<std::string> Session::providers() const { return bridge::providers(impl_->handle); }

std::vector<NodePlacement> Session::placement() const {
  std::vector<NodePlacement> rows;
  for (auto& row : bridge::placement(impl_->handle)) rows.push_back({row[0], row[1], row[2]});
  return rows;
}

void Session::run(std::span<const Value> inputs, std::span<Value> outputs) const {
  constexpr size_t kFew = 16;
  bridge::Handle few[2 * kFew];
  std::vector<bridge::Handle> many;
  size_t count = inputs.size() + outputs.size();
  bridge::Handle* handles = few;
  if (count > 2 * kFew) {
    many.resize(count);
    handles = many.data();
  }
  for (size_t i = 0; i < inputs.size(); ++i) handles[i] = inputs[i].impl_->handle;
  bridge::Handle* out = handles + inputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) out[i] = outputs[i].impl_->handle;
  translated([&] {
    bridge::run(impl_->handle, {handles, inputs.size()}, {out, outputs.size()});
    return 0;
  });
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].impl_->handle != out[i]) outputs[i].impl_ = wrap(out[i]);
}

std::vector<Value> Session::run(std::span<const Value> inputs) const {
  std::vector<Value> results(outputs().size());
  run(inputs, results);
  return results;
}

std::map<std::string, Value> Session::run(const std::map<std::string, Value>& inputs) const {
  std::vector<Value> ordered;
  for (const ValueInfo& info : this->inputs()) {
    auto it = inputs.find(info.name);
    if (it == inputs.end()) throw Error(2, "Missing Input: '" + info.name + "'");
    ordered.push_back(it->second);
  }
  for (auto& entry : inputs) {
    auto named = [&](const ValueInfo& info) { return info.name == entry.first; };
    if (std::none_of(this->inputs().begin(), this->inputs().end(), named))
      throw Error(2, "Invalid input name: " + entry.first);
  }
  std::vector<Value> results = run(std::span<const Value>(ordered));
  std::map<std::string, Value> named;
  for (size_t i = 0; i < results.size(); ++i) named[outputs()[i].name] = results[i];
  return named;
}

}  // namespace v1
}  // namespace epona
