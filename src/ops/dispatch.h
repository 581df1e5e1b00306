#pragma once
#include "base/error.h"
#include "base/types.h"

namespace epona {

/// A list of element types for dispatch().
template <class... Ts>
struct Types {};

template <class... As, class... Bs>
constexpr Types<As..., Bs...> operator+(Types<As...>, Types<Bs...>) {
  return {};
}

using FloatTypes = Types<float, double, Float16, BFloat16>;
using SignedTypes = Types<int8_t, int16_t, int32_t, int64_t>;
using UnsignedTypes = Types<uint8_t, uint16_t, uint32_t, uint64_t>;
using IntegerTypes = decltype(SignedTypes{} + UnsignedTypes{});
using NumericTypes = decltype(FloatTypes{} + IntegerTypes{});

/// Calls fn.template operator()<T>() with the C++ type of `type`, if it is in the list; says whether it was.
template <class... Ts, class Fn>
bool dispatch(DataType type, Types<Ts...>, Fn&& fn) {
  return ((type == data_type_of<Ts> ? (fn.template operator()<Ts>(), true) : false) || ...);
}

/// Whether a type is in the list.
template <class... Ts>
constexpr bool contains(Types<Ts...>, DataType type) {
  return ((type == data_type_of<Ts>) || ...);
}

/// The type in which a kernel computes: float for the 16-bit floats, itself otherwise.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Float16> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <class T>
using Compute = typename ComputeType<T>::type;

}  // namespace epona
