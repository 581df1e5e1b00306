#include "ops/text/utf8_util.h"

#include <locale.h>
#include <wctype.h>

namespace epona {
namespace {

/// A locale with Unicode's case mappings, apart from the process' own; null where the system has none (then ASCII
/// only).
locale_t unicode_locale() {
  static const locale_t locale = [] {
    for (const char* name : {"C.UTF-8", "C.utf8", "en_US.UTF-8"})
      if (locale_t found = newlocale(LC_CTYPE_MASK, name, nullptr)) return found;
    return locale_t{};
  }();
  return locale;
}

template <class Fn>
std::string map_text(std::string_view text, Fn&& fn) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) append_code_point(out, fn(next_code_point(text)));
  return out;
}

}  // namespace

uint32_t next_code_point(std::string_view& text) {
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[i])); };
  uint32_t first = byte(0);
  size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  uint32_t code = length == 1 ? first : length ? first & (0x7fu >> length) : 0;
  bool valid = length > 0 && length <= text.size();
  for (size_t i = 1; valid && i < length; ++i) {
    valid = byte(i) >> 6 == 2;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[5] = {0, 0, 0x80, 0x800, 0x10000};
  valid = valid && code >= kLeast[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  text.remove_prefix(valid ? length : 1);
  return valid ? code : first | kRawByte;
}

void append_code_point(std::string& text, uint32_t code) {
  auto put = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code & kRawByte) return put(code & 0xff);
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

uint32_t to_lower(uint32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  if (code & kRawByte || !unicode_locale()) return code;
  return static_cast<uint32_t>(towlower_l(static_cast<wint_t>(code), unicode_locale()));
}

uint32_t to_upper(uint32_t code) {
  if (code < 0x80) return code >= 'a' && code <= 'z' ? code - 32 : code;
  if (code & kRawByte || !unicode_locale()) return code;
  return static_cast<uint32_t>(towupper_l(static_cast<wint_t>(code), unicode_locale()));
}

std::string to_lower(std::string_view text) {
  return map_text(text, [](uint32_t code) { return to_lower(code); });
}

std::string to_upper(std::string_view text) {
  return map_text(text, [](uint32_t code) { return to_upper(code); });
}

}  // namespace epona
