#include "ops/convert_text.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "ops/dispatch.h"

namespace epona {
namespace {

template <class T>
std::string format_number(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  }
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

[[noreturn]] void not_a_number(const std::string& text, DataType type) {
  fail(Code::invalid_argument, "Cast: the string \"", text, "\" is not a number, so it does not convert to ", type);
}

template <class T>
bool parse_whole(std::string_view text, T& value) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// strtod and not from_chars: it takes a plus sign and infinities of any case, and its result saturates.
bool parse_real(std::string_view text, double& value) {
  std::string copy(text);
  char* end = nullptr;
  value = std::strtod(copy.c_str(), &end);
  return !copy.empty() && end == copy.c_str() + copy.size();
}

}  // namespace

void format_text(DataType from_type, const void* from, std::string* to, int64_t begin, int64_t end) {
  bool done = dispatch(from_type, Types<double, int64_t, uint64_t>{}, [&]<class T>() {
    for (int64_t i = begin; i < end; ++i) to[i] = format_number(static_cast<const T*>(from)[i]);
  });
  if (done) return;
  const char* bytes = static_cast<const char*>(from);
  bool whole = is_integer(from_type) || from_type == DataType::boolean ||
               (is_subbyte(from_type) && from_type != DataType::float4e2m1);
  float reals[4];
  int64_t wholes[4];
  for (int64_t i = begin; i < end; i += 4) {
    int64_t n = std::min<int64_t>(4, end - i);
    const char* at = bytes + static_cast<size_t>(i) * type_bits(from_type) / 8;
    if (whole)
      convert_elements(from_type, at, DataType::int64, wholes, 0, n);
    else
      convert_elements(from_type, at, DataType::float32, reals, 0, n);
    for (int64_t k = 0; k < n; ++k) to[i + k] = whole ? format_number(wholes[k]) : format_number(reals[k]);
  }
}

void parse_text(const std::string* from, DataType to_type, void* to, int64_t begin, int64_t end,
                const ConvertOptions& options) {
  char* bytes = static_cast<char*>(to);
  double reals[4];
  int64_t wholes[4];
  for (int64_t i = begin; i < end; i += 4) {
    int64_t n = std::min<int64_t>(4, end - i);
    bool whole = is_integer(to_type) && to_type != DataType::uint64;
    for (int64_t k = 0; k < n; ++k) {
      std::string_view text = trim(from[i + k]);
      if (whole && !parse_whole(text, wholes[k])) whole = false;
      if (!parse_real(text, reals[k])) not_a_number(from[i + k], to_type);
      if (to_type == DataType::float32) {
        static_cast<float*>(to)[i + k] = std::strtof(std::string(text).c_str(), nullptr);
      } else if (to_type == DataType::uint64) {
        uint64_t& value = static_cast<uint64_t*>(to)[i + k];
        if (!parse_whole(text, value)) convert_elements(DataType::float64, &reals[k], to_type, &value, 0, 1);
      }
    }
    if (to_type == DataType::float32 || to_type == DataType::uint64) continue;
    char* at = bytes + static_cast<size_t>(i) * type_bits(to_type) / 8;
    if (whole)
      convert_elements(DataType::int64, wholes, to_type, at, 0, n, options);
    else
      convert_elements(DataType::float64, reals, to_type, at, 0, n, options);
  }
}

}  // namespace epona
