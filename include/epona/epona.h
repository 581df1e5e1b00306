#pragma once

/// Epona's C++ API: load an ONNX model, run it.
///
///   epona::Session session("model.onnx");
///   float pixels[3 * 224 * 224] = {...};
///   epona::Value input = epona::Value::view(std::span(pixels), {1, 3, 224, 224});
///   std::vector<epona::Value> outputs = session.run({input});
///   std::span<const float> scores = outputs[0].data<float>();
///
/// No environment object, no third-party types, RAII throughout. Every function throws epona::Error.

#include <epona/version.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace epona {
inline namespace v1 {

/// What went wrong. code() is a number of the ORT C ABI: 1 fail, 2 invalid argument, 3 no such file, 7 invalid protobuf,
/// 9 not implemented, 10 invalid graph. what() names the file, node or value, what was expected and what was found.
class EPONA_API Error : public std::runtime_error {
 public:
  Error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ~Error() override;
  int code() const noexcept { return code_; }

 private:
  int code_;
};

/// Element types, numbered as ONNX numbers them.
enum class ElementType : int {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  bfloat16 = 16,
};

template <class T>
inline constexpr ElementType element_type_of = ElementType::undefined;
template <> inline constexpr ElementType element_type_of<float> = ElementType::float32;
template <> inline constexpr ElementType element_type_of<double> = ElementType::float64;
template <> inline constexpr ElementType element_type_of<uint8_t> = ElementType::uint8;
template <> inline constexpr ElementType element_type_of<int8_t> = ElementType::int8;
template <> inline constexpr ElementType element_type_of<uint16_t> = ElementType::uint16;
template <> inline constexpr ElementType element_type_of<int16_t> = ElementType::int16;
template <> inline constexpr ElementType element_type_of<uint32_t> = ElementType::uint32;
template <> inline constexpr ElementType element_type_of<int32_t> = ElementType::int32;
template <> inline constexpr ElementType element_type_of<uint64_t> = ElementType::uint64;
template <> inline constexpr ElementType element_type_of<int64_t> = ElementType::int64;
template <> inline constexpr ElementType element_type_of<bool> = ElementType::boolean;
template <> inline constexpr ElementType element_type_of<std::string> = ElementType::string;

/// A tensor, sequence, map or nothing (an absent optional). Copies share the same elements.
class EPONA_API Value {
 public:
  enum class Kind { none, tensor, sequence, map };

  Value();  ///< kind none
  /// A tensor with its own, uninitialised elements (strings are empty).
  static Value allocate(ElementType type, std::span<const int64_t> shape);
  /// A tensor over the caller's elements, which must outlive it. float16 and bfloat16 elements are uint16_t: use the
  /// overload that takes a type.
  template <class T>
  static Value view(std::span<T> elements, std::initializer_list<int64_t> shape) {
    return view_of(element_type_of<std::remove_const_t<T>>, elements.data(), elements.size(),
                   std::span<const int64_t>(shape.begin(), shape.size()));
  }
  template <class T>
  static Value view(std::span<T> elements, std::span<const int64_t> shape) {
    return view_of(element_type_of<std::remove_const_t<T>>, elements.data(), elements.size(), shape);
  }
  static Value view(ElementType type, void* elements, size_t count, std::span<const int64_t> shape);

  /// The same in the memory of a device ("cuda:0"; "cpu" is the host's). Throws, naming what is missing, when this machine
  /// has none such.
  static Value allocate(ElementType type, std::span<const int64_t> shape, const std::string& device);
  /// No elements yet: an output of Session::run that shall be left in the memory of a device.
  static Value wanted_on(const std::string& device);

  std::string device() const;                 ///< "cpu", "cuda:0"
  Value to(const std::string& device) const;  ///< this value when it is there, otherwise a copy
  void assign(const Value& from);             ///< copies the elements of a tensor of the same type and size

  Kind kind() const;
  ElementType type() const;                ///< of a tensor
  std::span<const int64_t> shape() const;  ///< of a tensor; valid as long as this Value
  size_t size() const;                     ///< number of elements of a tensor, of items of a sequence or map
  /// The elements of a tensor in host memory; throws when T is not its type.
  template <class T>
  std::span<const T> data() const {
    return {static_cast<const T*>(checked_data(element_type_of<T>)), size()};
  }
  template <class T>
  std::span<T> data() {
    return {static_cast<T*>(checked_data(element_type_of<T>)), size()};
  }
  const void* raw() const;  ///< the address, in whatever memory

  std::vector<Value> items() const;  ///< of a sequence
  Value keys() const;                ///< of a map: a tensor of int64 or string
  Value values() const;              ///< of a map: a tensor, in the order of keys()

  struct Impl;

 private:
  friend class Session;
  template <class T>
  static Value view_of(ElementType type, T* elements, size_t count, std::span<const int64_t> shape) {
    return view(type, const_cast<std::remove_const_t<T>*>(elements), count, shape);
  }
  void* checked_data(ElementType type) const;
  std::shared_ptr<Impl> impl_;
};

/// An input or output of a model.
struct ValueInfo {
  std::string name;
  std::string type;               ///< "tensor(float)", "seq(tensor(int64))", ...
  std::vector<int64_t> shape;     ///< -1 where a dimension is not fixed
  std::vector<std::string> dims;  ///< the same as text: "3", "batch", "?"
};

/// How a session is made.
struct SessionOptions {
  int threads = 0;                            ///< 0: as many as the affinity mask and the cgroup quota allow
  int optimization_level = 99;                ///< 0 none, 1 basic, 2 extended, 3 layout, 99 all
  int log_severity = 2;                       ///< 0 verbose ... 4 fatal
  std::string optimized_model_path;           ///< where to write the optimized model; empty: nowhere
  std::map<std::string, int64_t> dims;        ///< fixes symbolic dimensions by name
  std::map<std::string, std::string> config;  ///< session configuration entries
  std::vector<std::pair<std::string, std::map<std::string, std::string>>> providers;  ///< in order of preference
};

/// Which provider runs a node.
struct NodePlacement {
  std::string name, op, provider;
};

/// A model ready to run. run() may be called from many threads at once.
class EPONA_API Session {
 public:
  /// The file and its external data must not change while the constructor reads them; afterwards they may.
  explicit Session(const std::filesystem::path& model, const SessionOptions& options = {});
  /// The bytes are not needed afterwards.
  explicit Session(std::span<const std::byte> model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;
  std::vector<std::string> providers() const;
  std::vector<NodePlacement> placement() const;

  /// Inputs in the order of inputs(); the result has one value for each of outputs().
  std::vector<Value> run(std::span<const Value> inputs) const;
  std::vector<Value> run(std::initializer_list<Value> inputs) const {
    return run(std::span<const Value>(inputs.begin(), inputs.size()));
  }
  /// The same into values of the caller: an output of kind tensor is written in place (its shape must fit), one of kind
  /// none is made. Values in the memory of a device that the model runs on are read and written there, without a copy.
  void run(std::span<const Value> inputs, std::span<Value> outputs) const;
  /// By name; all outputs.
  std::map<std::string, Value> run(const std::map<std::string, Value>& inputs) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace epona
