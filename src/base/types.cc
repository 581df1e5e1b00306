#include "base/types.h"

#include <array>

#include "base/error.h"
#include "base/shape.h"

namespace epona {
namespace {

struct TypeRow {
  const char* name;
  size_t bits;
};

constexpr std::array<TypeRow, 27> kTypes = {
    {{"undefined", 0},      {"float", 32},     {"uint8", 8},
     {"int8", 8},           {"uint16", 16},    {"int16", 16},
     {"int32", 32},         {"int64", 64},     {"string", sizeof(std::string) * 8},
     {"bool", 8},           {"float16", 16},   {"double", 64},
     {"uint32", 32},        {"uint64", 64},    {"complex64", 64},
     {"complex128", 128},   {"bfloat16", 16},  {"float8e4m3fn", 8},
     {"float8e4m3fnuz", 8}, {"float8e5m2", 8}, {"float8e5m2fnuz", 8},
     {"uint4", 4},          {"int4", 4},       {"float4e2m1", 4},
     {"float8e8m0", 8},     {"uint2", 2},      {"int2", 2}}};

/// A number that is no type (a damaged model's) has the row of "undefined".
const TypeRow& row(DataType type) {
  const auto index = static_cast<size_t>(type);
  return kTypes[index < kTypes.size() ? index : 0];
}

}  // namespace

const char* type_name(DataType type) { return row(type).name; }

DataType type_from_name(std::string_view name) {
  for (size_t i = 1; i < kTypes.size(); ++i)
    if (name == kTypes[i].name) return static_cast<DataType>(i);
  return DataType::undefined;
}

size_t type_bits(DataType type) { return row(type).bits; }

size_t type_bytes(DataType type, int64_t count) {
  size_t bits = type_bits(type);
  if (bits == 0) fail(Code::invalid_argument, "a tensor without an element type has no size");
  if (bits < 8) return static_cast<size_t>(checked_add(count, static_cast<int64_t>(8 / bits) - 1)) / (8 / bits);
  return static_cast<size_t>(checked_mul(count, static_cast<int64_t>(bits / 8)));
}

bool is_float(DataType type) {
  return type == DataType::float32 || type == DataType::float64 || type == DataType::float16 ||
         type == DataType::bfloat16;
}

bool is_integer(DataType type) {
  switch (type) {
    case DataType::uint8:
    case DataType::int8:
    case DataType::uint16:
    case DataType::int16:
    case DataType::int32:
    case DataType::int64:
    case DataType::uint32:
    case DataType::uint64:
      return true;
    default:
      return false;
  }
}

bool is_subbyte(DataType type) {
  size_t bits = type_bits(type);
  return bits > 0 && bits < 8;
}

}  // namespace epona
