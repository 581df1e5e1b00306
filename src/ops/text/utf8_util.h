#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace epona {

/// Takes the next code point off the front of `text`. A byte that does not belong to valid UTF-8 comes back as itself,
/// marked by kRawByte, so that writing it again gives the same byte.
inline constexpr uint32_t kRawByte = 0x80000000u;
uint32_t next_code_point(std::string_view& text);
void append_code_point(std::string& text, uint32_t code);

/// Lower or upper case by Unicode's simple mappings; the same whatever the process' locale is.
uint32_t to_lower(uint32_t code);
uint32_t to_upper(uint32_t code);
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

}  // namespace epona
