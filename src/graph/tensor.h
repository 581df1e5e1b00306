#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/shape.h"
#include "base/types.h"

namespace epona {

class Device;

/// A dense tensor: element type, dims and the address of its elements (row-major).
/// `owner` keeps the memory, and the device, alive; it is empty for a view into a frame's block or a caller's buffer.
/// Kernels find their operands in the memory they work in, and need not look at `device`: what comes from outside is
/// brought there by the executor.
/// Strings: `data` points to std::string objects. Sub-byte types are packed, low bits first.
struct Tensor {
  DataType type = DataType::undefined;
  Shape shape;
  void* data = nullptr;
  std::shared_ptr<void> owner;
  Device* device = nullptr;  ///< in whose memory the elements of a value from outside are; null: the host's

  /// A tensor with its own 64-byte aligned memory; numbers are left uninitialised, strings empty.
  static Tensor allocate(DataType type, Shape shape);
  static Tensor allocate(DataType type, Shape shape, Device* device);
  /// No elements yet, but the memory they shall be in: asks a run to leave an output there.
  static Tensor wanted_on(Device& device);
  template <class T>
  static Tensor of(Shape shape, std::span<const T> values) {
    Tensor tensor = allocate(data_type_of<T>, std::move(shape));
    if (tensor.size() != static_cast<int64_t>(values.size()))
      fail(Code::invalid_argument, "shape ", tensor.shape, " does not hold ", values.size(), " elements");
    std::copy(values.begin(), values.end(), tensor.as<T>());
    return tensor;
  }
  template <class T>
  static Tensor scalar(T value) {
    return of<T>(Shape{}, std::span<const T>(&value, 1));
  }

  explicit operator bool() const { return type != DataType::undefined; }
  int64_t size() const { return shape.size(); }
  size_t bytes() const { return type_bytes(type, size()); }

  template <class T>
  T* as() {
    return static_cast<T*>(data);
  }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  /// The elements, with a check of the type.
  template <class T>
  std::span<const T> span() const {
    if (type != data_type_of<T>) fail(Code::invalid_argument, "a tensor of ", type, " was read as ", data_type_of<T>);
    return {as<T>(), static_cast<size_t>(size())};
  }
  template <class T>
  std::span<T> span() {
    auto view = std::as_const(*this).span<T>();
    return {as<T>(), view.size()};
  }
  /// int32 or int64 elements as int64; any other type is an error.
  std::vector<int64_t> ints() const;
  /// A deep copy with its own memory, on the same device.
  Tensor clone() const;
  /// This tensor when it is in that memory (null: the host's), otherwise a copy there.
  Tensor in_memory_of(Device* wanted) const;
  /// Copies the elements of a tensor of the same type and size, whatever memories they are in.
  void assign(const Tensor& from);
};

struct RuntimeValue;

/// A map of ai.onnx.ml: keys are int64 or string, values int64, float, double or string, both as 1-D tensors.
struct MapValue {
  Tensor keys;
  Tensor values;
};

/// What one graph value holds at run time: nothing (an absent optional), a tensor, a sequence, or a map.
struct RuntimeValue {
  enum class Kind : uint8_t { none, tensor, sequence, map };
  Kind kind = Kind::none;
  Tensor tensor;                                           ///< kind tensor
  DataType element = DataType::undefined;                  ///< kind sequence: element type of its tensors
  std::shared_ptr<const std::vector<RuntimeValue>> items;  ///< kind sequence; shared, never changed in place
  std::shared_ptr<const MapValue> map;                     ///< kind map

  RuntimeValue() = default;
  RuntimeValue(Tensor t) : kind(Kind::tensor), tensor(std::move(t)) {}  // NOLINT: implicit by design
  static RuntimeValue sequence(DataType element, std::vector<RuntimeValue> items);
  static RuntimeValue of_map(MapValue map);
};

}  // namespace epona
