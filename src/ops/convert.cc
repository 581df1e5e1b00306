#include "ops/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half_block.h"
#include "ops/convert_text.h"
#include "ops/dispatch.h"

namespace epona {
namespace {

using Plain = Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool>;
/// Pairs of these, the common ones, convert in one step.
using Direct = Types<float, int32_t, int64_t, uint8_t, int8_t, bool>;

/// A float outside the range of an integer type gives what x86 conversions and numpy give: the smallest int32 or int64,
/// of which narrower types take the low bits.
template <class To, class From>
To to_integer(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_integral_v<From>) {
    return static_cast<To>(value);
  } else if constexpr (sizeof(To) < 4 || std::is_same_v<To, int32_t>) {
    constexpr From kLow = std::is_same_v<From, double> ? From(-2147483648.999) : From(-2147483648.0);
    bool inside = value >= kLow && value < From(2147483648.0);
    return static_cast<To>(inside ? static_cast<int32_t>(value) : std::numeric_limits<int32_t>::min());
  } else {
    if constexpr (std::is_same_v<To, uint64_t>)
      if (value >= From(0x1p63) && value < From(0x1p64)) return static_cast<uint64_t>(value);
    bool inside = value >= From(-0x1p63) && value < From(0x1p63);
    return static_cast<To>(inside ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min());
  }
}

template <class To, class From>
To convert_one(From value) {
  if constexpr (std::is_floating_point_v<To>)
    return static_cast<To>(value);
  else
    return to_integer<To>(value);
}

template <class From, class To>
void convert_plain(const From* from, To* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = convert_one<To>(from[i]);
}

/// The float below in magnitude with the last bit set when inexact ("round to odd"): a second rounding, to a type with at
/// least two bits less, then gives what one rounding would.
float round_to_odd(double value) {
  float nearest = static_cast<float>(value);
  double back = nearest;
  if (back == value || value != value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(back) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1u);
}

/// The same for integers that a double does not hold.
template <class T>
double odd_double(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    constexpr T kLow = 0xfff;
    bool large = value > (T(1) << 52);
    if constexpr (std::is_signed_v<T>) large = large || value < -(T(1) << 52);
    if (large && (value & kLow)) value = static_cast<T>((value & ~kLow) | 0x1000);
    return static_cast<double>(value);
  }
}

/// One block of numbers in a type that holds them all exactly.
struct Wide {
  enum class Kind { real, integer, natural } kind = Kind::real;
  union {
    double real[kConvertBlock];
    int64_t integer[kConvertBlock];
    uint64_t natural[kConvertBlock];
  };
};

template <class Fn>
void visit(const Wide& wide, Fn&& fn) {
  if (wide.kind == Wide::Kind::real) return fn(wide.real);
  if (wide.kind == Wide::Kind::integer) return fn(wide.integer);
  fn(wide.natural);
}

template <class T>
const T* offset(const void* base, int64_t index) {
  return static_cast<const T*>(base) + index;
}

void load(DataType type, const void* from, int64_t begin, int64_t n, Wide& wide) {
  wide.kind = Wide::Kind::real;
  if (is_half(type)) {
    float buffer[kConvertBlock];
    widen_half(type, offset<uint16_t>(from, begin), buffer, n);
    return convert_plain(buffer, wide.real, n);
  }
  if (is_small_float(type)) {
    uint8_t codes[kConvertBlock];
    const uint8_t* code = offset<uint8_t>(from, begin);
    if (is_subbyte(type)) {
      unpack_elements(type, from, begin, n, codes);
      code = codes;
    }
    const float* table = small_float_table(type);
    for (int64_t i = 0; i < n; ++i) wide.real[i] = table[code[i]];
    return;
  }
  if (is_subbyte(type)) {
    uint8_t codes[kConvertBlock];
    unpack_elements(type, from, begin, n, codes);
    wide.kind = Wide::Kind::integer;
    bool is_signed = type == DataType::int4 || type == DataType::int2;
    for (int64_t i = 0; i < n; ++i) wide.integer[i] = is_signed ? static_cast<int8_t>(codes[i]) : codes[i];
    return;
  }
  dispatch(type, Plain{}, [&]<class T>() {
    const T* values = offset<T>(from, begin);
    if constexpr (std::is_floating_point_v<T>) {
      convert_plain(values, wide.real, n);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      wide.kind = Wide::Kind::natural;
      convert_plain(values, wide.natural, n);
    } else {
      wide.kind = Wide::Kind::integer;
      convert_plain(values, wide.integer, n);
    }
  });
}

void store(const Wide& wide, DataType type, void* to, int64_t begin, int64_t n, const ConvertOptions& options) {
  if (is_half(type) || is_small_float(type)) {
    float values[kConvertBlock];
    visit(wide, [&](auto* from) {
      for (int64_t i = 0; i < n; ++i) values[i] = round_to_odd(odd_double(from[i]));
    });
    if (is_half(type)) return narrow_half(type, values, static_cast<uint16_t*>(to) + begin, n);
    uint8_t codes[kConvertBlock];
    for (int64_t i = 0; i < n; ++i) codes[i] = encode_small_float(type, values[i], options.saturate, options.round);
    if (is_subbyte(type)) return pack_elements(type, codes, to, begin, n);
    std::copy_n(codes, n, static_cast<uint8_t*>(to) + begin);
    return;
  }
  if (is_subbyte(type)) {
    uint8_t codes[kConvertBlock];
    visit(wide, [&](auto* from) {
      for (int64_t i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(to_integer<int8_t>(from[i]));
    });
    return pack_elements(type, codes, to, begin, n);
  }
  dispatch(type, Plain{},
           [&]<class T>() { visit(wide, [&](auto* from) { convert_plain(from, static_cast<T*>(to) + begin, n); }); });
}

bool convert_direct(DataType from_type, const void* from, DataType to_type, void* to, int64_t begin, int64_t n) {
  if (from_type == DataType::float32 && is_half(to_type)) {
    narrow_half(to_type, offset<float>(from, begin), static_cast<uint16_t*>(to) + begin, n);
    return true;
  }
  if (is_half(from_type) && to_type == DataType::float32) {
    widen_half(from_type, offset<uint16_t>(from, begin), static_cast<float*>(to) + begin, n);
    return true;
  }
  bool done = false;
  dispatch(from_type, Direct{}, [&]<class From>() {
    done = dispatch(to_type, Direct{},
                    [&]<class To>() { convert_plain(offset<From>(from, begin), static_cast<To*>(to) + begin, n); });
  });
  return done;
}

void copy_elements(DataType type, const void* from, void* to, int64_t begin, int64_t n) {
  if (type == DataType::string) {
    std::copy_n(offset<std::string>(from, begin), n, static_cast<std::string*>(to) + begin);
    return;
  }
  if (from == to) return;
  size_t start = static_cast<size_t>(begin) * type_bits(type) / 8;
  std::memcpy(static_cast<char*>(to) + start, static_cast<const char*>(from) + start, type_bytes(type, n));
}

}  // namespace

void unpack_elements(DataType type, const void* from, int64_t begin, int64_t count, uint8_t* to) {
  const int bits = static_cast<int>(type_bits(type)), per_byte = 8 / bits;
  const bool is_signed = type == DataType::int4 || type == DataType::int2;
  const uint8_t mask = static_cast<uint8_t>((1 << bits) - 1), top = static_cast<uint8_t>(1 << (bits - 1));
  const uint8_t* bytes = static_cast<const uint8_t*>(from);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = begin + i;
    uint8_t code = (bytes[at / per_byte] >> (at % per_byte * bits)) & mask;
    to[i] = is_signed ? static_cast<uint8_t>((code ^ top) - top) : code;
  }
}

void pack_elements(DataType type, const uint8_t* from, void* to, int64_t begin, int64_t count) {
  const int bits = static_cast<int>(type_bits(type)), per_byte = 8 / bits;
  const uint8_t mask = static_cast<uint8_t>((1 << bits) - 1);
  uint8_t* bytes = static_cast<uint8_t*>(to) + begin / per_byte;
  for (int64_t i = 0; i < count; i += per_byte) {
    unsigned byte = 0;
    for (int64_t k = 0; k < per_byte && i + k < count; ++k)
      byte |= static_cast<unsigned>(from[i + k] & mask) << (k * bits);
    *bytes++ = static_cast<uint8_t>(byte);
  }
}

void load_floats(DataType type, const void* from, int64_t begin, int64_t count, float* to) {
  convert_elements(type, static_cast<const char*>(from) + static_cast<size_t>(begin) * type_bits(type) / 8,
                   DataType::float32, to, 0, count);
}

void convert_elements(DataType from_type, const void* from, DataType to_type, void* to, int64_t begin, int64_t end,
                      const ConvertOptions& options) {
  if (begin >= end) return;
  if (from_type == to_type) return copy_elements(from_type, from, to, begin, end - begin);
  if (from_type == DataType::string) return parse_text(offset<std::string>(from, 0), to_type, to, begin, end, options);
  if (to_type == DataType::string) return format_text(from_type, from, static_cast<std::string*>(to), begin, end);
  if (convert_direct(from_type, from, to_type, to, begin, end - begin)) return;
  Wide wide;
  for (int64_t n; begin < end; begin += n) {
    n = std::min(kConvertBlock, end - begin);
    load(from_type, from, begin, n, wide);
    store(wide, to_type, to, begin, n, options);
  }
}

}  // namespace epona
