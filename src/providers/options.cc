#include "providers/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"

namespace epona {
namespace {

bool same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

template <class T>
std::optional<T> number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional<T>(value) : std::nullopt;
}

template <class T>
bool in_range(T value, std::string_view range) {
  size_t dots = range.find("..");
  if (dots == std::string_view::npos) return true;
  auto least = number<T>(range.substr(0, dots)), most = number<T>(range.substr(dots + 2));
  return (!least || value >= *least) && (!most || value <= *most);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string range_text(std::string_view range) {
  size_t dots = range.find("..");
  if (dots == std::string_view::npos) return "";
  std::string_view least = range.substr(0, dots), most = range.substr(dots + 2);
  if (most.empty()) return cat(" of at least ", least);
  if (least.empty()) return cat(" of at most ", most);
  return cat(" from ", least, " to ", most);
}

}  // namespace

const char* option_type_name(OptionType type) {
  switch (type) {
    case OptionType::text:
      return "str";
    case OptionType::integer:
      return "int";
    case OptionType::boolean:
      return "bool";
    case OptionType::real:
      return "float";
    case OptionType::choice:
      return "enum";
    case OptionType::path:
      return "path";
  }
  return "";
}

const OptionSpec* find_option(OptionSchema schema, std::string_view key) {
  for (const OptionSpec& spec : schema)
    if (key == spec.key) return &spec;
  return nullptr;
}

std::string check_option(std::string_view provider, const OptionSpec& spec, std::string_view text) {
  auto wrong = [&](const auto&... expected) {
    fail(Code::invalid_argument, "option '", spec.key, "' of ", provider, " is '", text, "'; expected ", expected...);
  };
  switch (spec.type) {
    case OptionType::text:
    case OptionType::path:
      break;
    case OptionType::boolean:
      if (text == "1" || same(text, "true") || same(text, "on") || same(text, "yes")) return "1";
      if (text == "0" || same(text, "false") || same(text, "off") || same(text, "no")) return "0";
      wrong("0, 1, false or true");
      break;
    case OptionType::integer: {
      // The schema may name a default that no number stands for, such as "" for "not set".
      if (text == spec.fallback) break;
      // Python's True and False are ints too.
      if (same(text, "true")) text = "1";
      if (same(text, "false")) text = "0";
      // Limits above INT64_MAX (SIZE_MAX is the peer's "no limit") count as the largest.
      if (auto large = number<uint64_t>(text); large && *large > INT64_MAX) text = "9223372036854775807";
      auto value = number<int64_t>(text);
      if (!value || !in_range(*value, spec.allowed)) wrong("a whole number", range_text(spec.allowed));
      return std::to_string(*value);
    }
    case OptionType::real: {
      if (text == spec.fallback) break;
      auto value = number<double>(text);
      if (!value || !in_range(*value, spec.allowed)) wrong("a number", range_text(spec.allowed));
      break;
    }
    case OptionType::choice: {
      std::vector<std::string_view> choices = split(spec.allowed, '|');
      for (std::string_view choice : choices)
        if (same(text, choice)) return std::string(choice);
      std::string list;
      for (std::string_view choice : choices) list += cat(list.empty() ? "'" : ", '", choice, "'");
      wrong("one of ", list, ".", did_you_mean(text, choices));
    }
  }
  return std::string(text);
}

OptionValues::OptionValues(std::string_view provider, OptionSchema schema, const OptionMap& given) {
  for (const OptionSpec& spec : schema) values_[spec.key] = spec.fallback;
  for (auto& [key, text] : given) {
    const OptionSpec* spec = find_option(schema, key);
    if (!spec) {
      std::vector<std::string_view> keys;
      for (const OptionSpec& other : schema) keys.push_back(other.key);
      fail(Code::invalid_argument, provider, " has no option '", key, "'.", did_you_mean(key, keys),
           " `epona providers ", provider, "` lists them all.");
    }
    given_[key] = values_[key] = check_option(provider, *spec, text);
  }
}

const std::string& OptionValues::text(std::string_view key) const {
  auto it = values_.find(std::string(key));
  if (it == values_.end()) fail(Code::fail, "no option '", key, "' in the schema");
  return it->second;
}

int64_t OptionValues::integer(std::string_view key) const { return number<int64_t>(text(key)).value_or(0); }
double OptionValues::real(std::string_view key) const { return number<double>(text(key)).value_or(0); }

}  // namespace epona
