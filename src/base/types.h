#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "base/float16.h"

namespace epona {

/// Element types; the numbers are those of ONNX's TensorProto.DataType.
enum class DataType : uint8_t {
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
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
};

/// "float", "int64", ...: the spelling inside "tensor(...)".
const char* type_name(DataType type);
/// The inverse of type_name; undefined for an unknown name.
DataType type_from_name(std::string_view name);
inline std::ostream& operator<<(std::ostream& out, DataType type) { return out << type_name(type); }

/// Bits of one element in a tensor's buffer (4-bit and 2-bit types are packed, low bits first); strings: of a std::string.
size_t type_bits(DataType type);
/// Bytes that `count` elements take. Throws when it overflows.
size_t type_bytes(DataType type, int64_t count);

bool is_float(DataType type);    ///< float16, bfloat16, float32, float64
bool is_integer(DataType type);  ///< whole-byte signed and unsigned integers
bool is_subbyte(DataType type);  ///< uint4, int4, float4e2m1, uint2, int2: packed several to a byte

/// Eight-bit floats and the E8M0 scale: storage types that convert to and from float.
template <DataType Type>
struct Float8 {
  uint8_t bits;
};
using Float8E4M3FN = Float8<DataType::float8e4m3fn>;
using Float8E4M3FNUZ = Float8<DataType::float8e4m3fnuz>;
using Float8E5M2 = Float8<DataType::float8e5m2>;
using Float8E5M2FNUZ = Float8<DataType::float8e5m2fnuz>;
using Float8E8M0 = Float8<DataType::float8e8m0>;

/// The C++ type that stores one element, and back.
template <class T>
inline constexpr DataType data_type_of = DataType::undefined;
template <> inline constexpr DataType data_type_of<float> = DataType::float32;
template <> inline constexpr DataType data_type_of<double> = DataType::float64;
template <> inline constexpr DataType data_type_of<Float16> = DataType::float16;
template <> inline constexpr DataType data_type_of<BFloat16> = DataType::bfloat16;
template <> inline constexpr DataType data_type_of<uint8_t> = DataType::uint8;
template <> inline constexpr DataType data_type_of<int8_t> = DataType::int8;
template <> inline constexpr DataType data_type_of<uint16_t> = DataType::uint16;
template <> inline constexpr DataType data_type_of<int16_t> = DataType::int16;
template <> inline constexpr DataType data_type_of<uint32_t> = DataType::uint32;
template <> inline constexpr DataType data_type_of<int32_t> = DataType::int32;
template <> inline constexpr DataType data_type_of<uint64_t> = DataType::uint64;
template <> inline constexpr DataType data_type_of<int64_t> = DataType::int64;
template <> inline constexpr DataType data_type_of<bool> = DataType::boolean;
template <> inline constexpr DataType data_type_of<std::string> = DataType::string;
template <> inline constexpr DataType data_type_of<std::complex<float>> = DataType::complex64;
template <> inline constexpr DataType data_type_of<std::complex<double>> = DataType::complex128;
template <DataType Type> inline constexpr DataType data_type_of<Float8<Type>> = Type;

}  // namespace epona
