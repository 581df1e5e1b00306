#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace epona {

/// What kind of value an option takes.
enum class OptionType { text, integer, boolean, real, choice, path };
const char* option_type_name(OptionType type);  ///< "str", "int", "bool", "float", "enum", "path"

/// One option of a provider.
struct OptionSpec {
  const char* key;
  OptionType type;
  const char* fallback;      ///< the default, as text; of a boolean "0" or "1"
  const char* allowed = "";  ///< integer, real: "least..most", either may be missing; choice: "a|b|c"
  const char* help = "";
  bool live = false;  ///< set_ep_dynamic_options may change it while the session lives
};

/// All options of a provider, as a static table.
using OptionSchema = std::span<const OptionSpec>;

/// Options as a user gives them: key -> text.
using OptionMap = std::map<std::string, std::string>;

/// The record of a key; nullptr when there is none.
const OptionSpec* find_option(OptionSchema schema, std::string_view key);

/// A value in its normal form (booleans 0 or 1, choices spelt as in the schema). Throws Error(invalid_argument) naming
/// the provider, the key and what is allowed.
std::string check_option(std::string_view provider, const OptionSpec& spec, std::string_view text);

/// Every option of a provider with its effective value.
class OptionValues {
 public:
  OptionValues() = default;
  /// Checks `given` against the schema; everything else has its default. An unknown key is an Error naming the nearest.
  OptionValues(std::string_view provider, OptionSchema schema, const OptionMap& given);

  const OptionMap& all() const { return values_; }
  const OptionMap& given() const { return given_; }  ///< only what the user set
  bool is_given(std::string_view key) const { return given_.contains(std::string(key)); }
  /// Getters of a key that the schema has (others are an error).
  const std::string& text(std::string_view key) const;
  int64_t integer(std::string_view key) const;
  bool boolean(std::string_view key) const { return text(key) == "1"; }
  double real(std::string_view key) const;

 private:
  OptionMap values_, given_;
};

}  // namespace epona
