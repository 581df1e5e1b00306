#pragma once
#include <limits>
#include <type_traits>

namespace epona {

/// Arithmetic that is defined for all operands, as numpy defines it: integers wrap, division by zero gives zero, the
/// smallest number divided by -1 is itself. Floats follow IEEE.

/// An unsigned type in which products of T do not promote to int.
template <class T>
using Wrap = std::conditional_t<sizeof(T) < sizeof(unsigned), unsigned, std::make_unsigned_t<T>>;

template <class T>
T wrap_add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
  else
    return a + b;
}

template <class T>
T wrap_sub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
  else
    return a - b;
}

template <class T>
T wrap_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
  else
    return a * b;
}

template <class T>
T wrap_neg(T a) {
  return wrap_sub(T(0), a);
}

/// Towards zero for integers.
template <class T>
T safe_div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return wrap_neg(a);
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
}

/// The remainder of truncating division (sign of a).
template <class T>
T safe_rem(T a, T b) {
  static_assert(std::is_integral_v<T>);
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return 0;
  return static_cast<T>(a % b);
}

}  // namespace epona
