#include "graph/tensor.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/device.h"

namespace epona {

Tensor Tensor::allocate(DataType type, Shape shape) {
  Tensor tensor;
  tensor.type = type;
  int64_t count = shape.size();
  tensor.shape = std::move(shape);
  if (type == DataType::string) {
    auto strings = std::shared_ptr<std::string[]>(new std::string[static_cast<size_t>(count)]);
    tensor.data = strings.get();
    tensor.owner = std::shared_ptr<void>(strings, strings.get());
    return tensor;
  }
  // 64 bytes more than asked for: vector loads of the last elements may run over.
  size_t bytes = (type_bytes(type, count) + 63) / 64 * 64 + 64;
  void* memory = std::aligned_alloc(64, bytes);
  if (!memory) fail(Code::fail, "out of memory: ", bytes, " bytes for a tensor of ", type, tensor.shape);
  tensor.data = memory;
  tensor.owner = std::shared_ptr<void>(memory, std::free);
  return tensor;
}

Tensor Tensor::allocate(DataType type, Shape shape, Device* device) {
  if (!device) return allocate(type, std::move(shape));
  if (type == DataType::string)
    fail(Code::not_implemented, "strings are objects of the host: a tensor(string) cannot be in the memory of ",
         device->name());
  Tensor tensor;
  tensor.type = type;
  tensor.owner = device->make(type_bytes(type, shape.size()));
  tensor.data = tensor.owner.get();
  tensor.shape = std::move(shape);
  tensor.device = device;
  return tensor;
}

Tensor Tensor::wanted_on(Device& device) {
  Tensor tensor;
  tensor.owner = device.shared_from_this();
  tensor.device = &device;
  return tensor;
}

std::vector<int64_t> Tensor::ints() const {
  if (type == DataType::int64) {
    auto values = span<int64_t>();
    return {values.begin(), values.end()};
  }
  if (type == DataType::int32) {
    auto values = span<int32_t>();
    return {values.begin(), values.end()};
  }
  fail(Code::invalid_argument, "expected a tensor of int32 or int64, found ", type);
}

Tensor Tensor::clone() const {
  Tensor copy = allocate(type, shape, device);
  copy.assign(*this);
  return copy;
}

Tensor Tensor::in_memory_of(Device* wanted) const {
  if (same_memory(device, wanted)) return *this;
  Tensor copy = allocate(type, shape, wanted);
  copy.assign(*this);
  return copy;
}

void Tensor::assign(const Tensor& from) {
  if (type == DataType::string)
    std::copy_n(from.as<std::string>(), size(), as<std::string>());
  else
    copy_bytes(data, device, from.data, from.device, bytes());
}

RuntimeValue RuntimeValue::sequence(DataType element, std::vector<RuntimeValue> items) {
  RuntimeValue value;
  value.kind = Kind::sequence;
  value.element = element;
  value.items = std::make_shared<const std::vector<RuntimeValue>>(std::move(items));
  return value;
}

RuntimeValue RuntimeValue::of_map(MapValue map) {
  RuntimeValue value;
  value.kind = Kind::map;
  value.map = std::make_shared<const MapValue>(std::move(map));
  return value;
}

}  // namespace epona
