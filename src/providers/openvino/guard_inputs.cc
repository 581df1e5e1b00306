#include "providers/openvino/guard_inputs.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

namespace epona::openvino {
namespace {

/// The first element that is not finite, -1 without one. Exponents are compared as integers, many at a time.
template <class Bits>
int64_t first_infinite(const Tensor& tensor, Bits exponent) {
  constexpr int64_t kBlock = 4096;
  auto* bits = tensor.as<Bits>();
  for (int64_t from = 0, size = tensor.size(); from < size; from += kBlock) {
    int64_t end = std::min(from + kBlock, size);
    Bits found = 0;
    for (int64_t i = from; i < end; ++i) found |= static_cast<Bits>((bits[i] & exponent) == exponent);
    if (!found) continue;
    for (int64_t i = from; i < end; ++i)
      if ((bits[i] & exponent) == exponent) return i;
  }
  return -1;
}

std::string infinite_at(const Tensor& tensor, int64_t at) {
  const char* what = "a value that is not finite";
  if (tensor.type == DataType::float32) what = std::isnan(tensor.as<float>()[at]) ? "NaN" : "an infinity";
  return cat(what, " at element ", at);
}

template <class T>
std::optional<std::string> first_outside(const Tensor& tensor, int64_t low, int64_t high) {
  auto values = tensor.span<T>();
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] < low || values[i] > high) return cat(values[i], " at element ", i);
  return std::nullopt;
}

std::optional<std::string> outside(const Tensor& tensor, int64_t low, int64_t high) {
  if (tensor.type == DataType::int64) return first_outside<int64_t>(tensor, low, high);
  if (tensor.type == DataType::int32) return first_outside<int32_t>(tensor, low, high);
  return std::nullopt;
}

/// A row along the last dim without any number, or NaN or a positive infinity anywhere.
std::optional<std::string> wrong_row(const Tensor& tensor) {
  int64_t width = tensor.shape.rank() > 0 ? tensor.shape.back() : 1;
  auto values = tensor.span<float>();
  for (int64_t from = 0; from < tensor.size(); from += width) {
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t i = from; i < from + width; ++i) {
      if (!(values[i] < std::numeric_limits<float>::infinity())) return infinite_at(tensor, i);
      largest = std::max(largest, values[i]);
    }
    if (std::isinf(largest)) return cat("nothing but negative infinities from element ", from, " on, a whole row");
  }
  return std::nullopt;
}

template <class T>
std::optional<std::string> wrong_number(const Tensor& tensor, Guard::Kind kind) {
  auto values = tensor.span<T>();
  for (size_t i = 0; i < values.size(); ++i) {
    T x = values[i];
    bool good = kind == Guard::Kind::nonzero ? x != 0 : kind == Guard::Kind::positive ? x > 0 : x >= 0;
    if (!good) return cat(x, " at element ", i);
  }
  return std::nullopt;
}

std::optional<std::string> wrong_coordinate(const Guard& guard, const Tensor& value, const Shape& data) {
  int64_t width = value.shape.rank() > 0 ? value.shape[value.shape.rank() - 1] : 0;
  if (width == 0 || guard.axis + width > data.rank()) return std::nullopt;  // an error of OpenVINO's
  for (int64_t i = 0; i < value.size(); ++i) {
    int64_t at = value.type == DataType::int32 ? value.as<int32_t>()[i] : value.as<int64_t>()[i];
    int64_t count = data[guard.axis + i % width];
    if (at < -count || at >= count) return cat(at, " at element ", i);
  }
  return std::nullopt;
}

/// The element that violates a guard; nothing when there is none. `data`: the dims of what the indices point into.
std::optional<std::string> violation(const Guard& guard, const Tensor& value, const Shape& data) {
  switch (guard.kind) {
    case Guard::Kind::finite:
    case Guard::Kind::number: {
      int64_t at = -1;
      if (value.type == DataType::float32) at = first_infinite<uint32_t>(value, 0x7f800000U);
      if (value.type == DataType::float16) at = first_infinite<uint16_t>(value, 0x7c00U);
      if (value.type == DataType::bfloat16) at = first_infinite<uint16_t>(value, 0x7f80U);
      return at < 0 ? std::nullopt : std::optional(infinite_at(value, at));
    }
    case Guard::Kind::mask:
      return wrong_row(value);
    case Guard::Kind::nonzero:
    case Guard::Kind::positive:
    case Guard::Kind::not_negative:
      if (value.type == DataType::float32) return wrong_number<float>(value, guard.kind);
      if (value.type == DataType::int64) return wrong_number<int64_t>(value, guard.kind);
      if (value.type == DataType::int32) return wrong_number<int32_t>(value, guard.kind);
      return std::nullopt;
    case Guard::Kind::index:
    case Guard::Kind::position: {
      if (guard.axis >= data.rank()) return std::nullopt;  // an error of OpenVINO's
      int64_t count = data[guard.axis];
      return outside(value, guard.kind == Guard::Kind::position ? 0 : -count, count - 1);
    }
    case Guard::Kind::coordinates:
      return wrong_coordinate(guard, value, data);
    case Guard::Kind::filled:
      if (guard.axis < value.shape.rank() && value.shape[guard.axis] == 0) return "no elements";
      return std::nullopt;
  }
  return std::nullopt;
}

/// An index out of range is an error on every provider: the session need not leave this one for it.
Code code_of(Guard::Kind kind) {
  bool error = kind == Guard::Kind::index || kind == Guard::Kind::position || kind == Guard::Kind::coordinates ||
               kind == Guard::Kind::filled;
  return error ? Code::invalid_argument : Code::ep_fail;
}

}  // namespace

GuardSet::GuardSet(const Graph& graph) {
  auto position = [&](ValueId value) {
    auto it = std::find(graph.inputs.begin(), graph.inputs.end(), value);
    return it == graph.inputs.end() ? -1 : static_cast<int>(it - graph.inputs.begin());
  };
  for (Guard& guard : find_guards(graph)) {
    if (is_inner(graph, guard)) inner_.emplace_back(code_of(guard.kind), describe(graph, guard));
    if (!is_for_inputs(graph, guard)) continue;
    Input input;
    input.value = position(guard.value);
    if (guard.data != kNone) {
      const Value& data = graph.values[guard.data];
      input.data = position(guard.data);
      if (input.data < 0) input.shape = data.constant ? data.constant.shape : *data.type.static_shape();
    }
    input.name = graph.values[guard.value].name;
    input.guard = std::move(guard);
    inputs_.push_back(std::move(input));
  }
}

std::optional<std::string> GuardSet::violation_of(const Input& input, const RunContext& c) {
  return violation(input.guard, c.in(input.value), input.data < 0 ? input.shape : c.in(input.data).shape);
}

void GuardSet::check_inputs(const RunContext& c) const {
  // A decoder's cache is megabytes in dozens of inputs: about as fast as memory is read.
  constexpr double kNsPerByte = 0.2;
  size_t bytes = 0;
  for (const Input& input : inputs_) bytes += c.in(input.value).bytes();
  auto count = static_cast<int64_t>(inputs_.size());
  std::atomic<int64_t> wrong = count;
  c.pool().parallel_for(count,
                        kNsPerByte * static_cast<double>(bytes) / static_cast<double>(std::max<int64_t>(count, 1)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end && i < wrong.load(std::memory_order_relaxed); ++i) {
                            if (!violation_of(inputs_[i], c)) continue;
                            int64_t known = wrong.load();
                            while (i < known && !wrong.compare_exchange_weak(known, i)) {
                            }
                          }
                        });
  if (wrong == count) return;
  const Input& input = inputs_[wrong];
  fail(code_of(input.guard.kind), "value '", input.name, "' holds ",
       violation_of(input, c).value_or("other values now"), input.guard.text);
}

void GuardSet::check_flags(const int32_t* flags) const {
  for (size_t i = 0; i < inner_.size(); ++i)
    if (flags[i] != 0) fail(inner_[i].first, inner_[i].second);
}

}  // namespace epona::openvino
