#include "npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>

namespace epona::cli {
namespace {

struct DtypeRow {
  const char* code;
  DataType type;
};

constexpr DtypeRow kDtypes[] = {{"f4", DataType::float32},   {"f8", DataType::float64},    {"f2", DataType::float16},
                                {"i1", DataType::int8},      {"i2", DataType::int16},      {"i4", DataType::int32},
                                {"i8", DataType::int64},     {"u1", DataType::uint8},      {"u2", DataType::uint16},
                                {"u4", DataType::uint32},    {"u8", DataType::uint64},     {"b1", DataType::boolean},
                                {"c8", DataType::complex64}, {"c16", DataType::complex128}};

template <class... Parts>
[[noreturn]] void bad(const std::filesystem::path& path, const Parts&... parts) {
  fail(Code::invalid_argument, path.string(), ": ", parts...);
}

/// The text after "'key':" in the header's dictionary.
std::string header_value(const std::filesystem::path& path, const std::string& header, const std::string& key) {
  size_t at = header.find("'" + key + "'");
  if (at == std::string::npos) bad(path, "the .npy header has no '", key, "'");
  at = header.find(':', at);
  if (at == std::string::npos) bad(path, "the .npy header is damaged");
  size_t begin = header.find_first_not_of(' ', at + 1);
  if (begin == std::string::npos) bad(path, "the .npy header is damaged");
  if (header[begin] == '(') return header.substr(begin, header.find(')', begin) - begin + 1);
  if (header[begin] == '[') return header.substr(begin, header.find(']', begin) - begin + 1);
  if (header[begin] == '\'') return header.substr(begin + 1, header.find('\'', begin + 1) - begin - 1);
  return header.substr(begin, header.find_first_of(",}", begin) - begin);
}

Shape parse_shape(const std::filesystem::path& path, const std::string& text) {
  Shape shape;
  for (size_t at = 0; (at = text.find_first_of("0123456789", at)) != std::string::npos;) {
    size_t end = text.find_first_not_of("0123456789", at);
    if (end == std::string::npos) end = text.size();
    if (end - at > 18) bad(path, "a dimension is too large");
    shape.push_back(std::stoll(text.substr(at, end - at)));
    at = end;
  }
  return shape;
}

void swap_bytes(char* data, size_t count, size_t item) {
  for (size_t i = 0; i < count; ++i) std::reverse(data + i * item, data + (i + 1) * item);
}

/// Calls `move(to, from)` for every element: its index in row-major order, and in column-major order.
template <class Move>
void for_each_transposed(const Shape& shape, int64_t count, Move move) {
  int rank = shape.rank();
  Shape index(rank, 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t source = 0, stride = 1;
    for (int axis = 0; axis < rank; ++axis) {
      source += index[axis] * stride;
      stride *= shape[axis];
    }
    move(i, source);
    for (int axis = rank - 1; axis >= 0 && ++index[axis] == shape[axis]; --axis) index[axis] = 0;
  }
}

/// Column-major elements into row-major order.
Tensor to_row_major(const Tensor& from) {
  Tensor to = Tensor::allocate(from.type, from.shape);
  if (from.type == DataType::string) {
    for_each_transposed(from.shape, from.size(),
                        [&](int64_t i, int64_t source) { to.as<std::string>()[i] = from.as<std::string>()[source]; });
    return to;
  }
  size_t item = type_bits(from.type) / 8;
  for_each_transposed(from.shape, from.size(), [&](int64_t i, int64_t source) {
    std::memcpy(to.as<char>() + static_cast<size_t>(i) * item, from.as<char>() + static_cast<size_t>(source) * item,
                item);
  });
  return to;
}

/// numpy pads with NUL characters; those inside the text are part of it.
std::string utf8(const std::filesystem::path& path, const char* data, size_t characters) {
  while (characters > 0 && std::all_of(data + 4 * (characters - 1), data + 4 * characters, [](char b) { return !b; }))
    --characters;
  std::string text;
  for (size_t i = 0; i < characters; ++i) {
    uint32_t c;
    std::memcpy(&c, data + 4 * i, 4);
    if (c > 0x10ffff) bad(path, "a string holds what is no character");
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
    } else if (c < 0x10000) {
      text += {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)),
               static_cast<char>(0x80 | (c & 0x3f))};
    } else {
      text += {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3f)),
               static_cast<char>(0x80 | (c >> 6 & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))};
    }
  }
  return text;
}

std::u32string utf32(const std::string& text) {
  std::u32string wide;
  for (size_t i = 0; i < text.size();) {
    auto lead = static_cast<unsigned char>(text[i]);
    size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    char32_t c = length == 1 ? lead : lead & (0xff >> (length + 1));
    for (size_t k = 1; k < length && i + k < text.size(); ++k)
      c = c << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
    wide += c;
    i += length;
  }
  return wide;
}

}  // namespace

Tensor read_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(Code::no_such_file, "'", path.string(), "' cannot be opened");
  char magic[8];
  if (!file.read(magic, 8) || std::memcmp(magic, "\x93NUMPY", 6) != 0) bad(path, "not a .npy file");
  uint32_t length = 0;
  if (!file.read(reinterpret_cast<char*>(&length), magic[6] == 1 ? 2 : 4)) bad(path, "the .npy header is damaged");
  if (length > (1u << 20)) bad(path, "the .npy header is damaged");
  std::string header(length, 0);
  if (!file.read(header.data(), length)) bad(path, "the .npy header is damaged");
  std::string descr = header_value(path, header, "descr");
  bool fortran = header_value(path, header, "fortran_order").starts_with("True");
  Shape shape = parse_shape(path, header_value(path, header, "shape"));
  auto read_all = [&](char* to, size_t bytes) {
    if (bytes && !file.read(to, static_cast<std::streamsize>(bytes))) bad(path, "the file ends before its data");
  };
  auto position = file.tellg();
  file.seekg(0, std::ios::end);
  auto available = static_cast<uint64_t>(file.tellg() - position);
  file.seekg(position);
  if (descr.size() > 2 && (descr[1] == 'U' || descr[1] == 'S')) {
    size_t width = 0, unit = descr[1] == 'U' ? 4 : 1;
    auto [end, error] = std::from_chars(descr.data() + 2, descr.data() + descr.size(), width);
    if (error != std::errc() || end != descr.data() + descr.size() || width > (1u << 28))
      bad(path, "dtype '", descr, "' has no tensor type");
    // Elements of width 0 take no room in the file, so that only the count itself can be checked.
    if (static_cast<uint64_t>(shape.size()) > (width ? available / (width * unit) : 1u << 24))
      bad(path, "the file ends before its data");
    Tensor tensor = Tensor::allocate(DataType::string, shape);
    std::string item(width * unit, 0);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      read_all(item.data(), item.size());
      if (unit == 4 && descr[0] == '>') swap_bytes(item.data(), width, unit);
      tensor.as<std::string>()[i] =
          unit == 4 ? utf8(path, item.data(), width) : item.substr(0, item.find_last_not_of('\0') + 1);
    }
    return fortran && shape.rank() > 1 ? to_row_major(tensor) : tensor;
  }
  DataType type = DataType::undefined;
  for (const DtypeRow& row : kDtypes)
    if (descr.size() > 1 && descr.substr(1) == row.code) type = row.type;
  if (descr == "|O") bad(path, "it holds pickled Python objects; save strings with dtype str, numbers with theirs");
  if (descr.starts_with('[')) bad(path, "structured arrays have no tensor type: save each field by itself");
  if (type == DataType::undefined) bad(path, "dtype '", descr, "' has no tensor type");
  if (available < type_bytes(type, shape.size())) bad(path, "the file ends before its data");
  Tensor tensor = Tensor::allocate(type, shape);
  read_all(tensor.as<char>(), tensor.bytes());
  bool complex = type == DataType::complex64 || type == DataType::complex128;
  size_t number = type_bits(type) / 8 / (complex ? 2 : 1);
  if (descr[0] == '>') swap_bytes(tensor.as<char>(), tensor.bytes() / number, number);
  return fortran && shape.rank() > 1 ? to_row_major(tensor) : tensor;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  std::string descr, payload;
  if (tensor.type == DataType::string) {
    std::vector<std::u32string> items;
    size_t width = 1;
    for (const std::string& text : tensor.span<std::string>()) {
      items.push_back(utf32(text));
      width = std::max(width, items.back().size());
    }
    descr = "<U" + std::to_string(width);
    for (auto& item : items) {
      item.resize(width);
      payload.append(reinterpret_cast<const char*>(item.data()), width * 4);
    }
  } else {
    for (const DtypeRow& row : kDtypes)
      if (row.type == tensor.type) descr = (type_bits(tensor.type) == 8 ? "|" : "<") + std::string(row.code);
    if (descr.empty()) descr = type_bits(tensor.type) == 16 ? "<u2" : "|u1";
    payload.assign(tensor.as<char>(), tensor.bytes());
  }
  std::string dims;
  bool packed = is_subbyte(tensor.type);
  if (packed) dims = std::to_string(tensor.bytes()) + ",";
  for (int i = 0; !packed && i < tensor.shape.rank(); ++i) dims += std::to_string(tensor.shape[i]) + ",";
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + dims + "), }";
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  auto length = static_cast<uint16_t>(header.size());
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  file.write(payload.data(), static_cast<std::streamsize>(payload.size()));
  if (!file.flush()) fail(Code::fail, path.string(), ": cannot be written");
}

}  // namespace epona::cli
