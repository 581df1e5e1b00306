#pragma once
#include <map>
#include <string>
#include <vector>

namespace epona::cli {

/// Wrong use of the command line: exit code 2.
struct UsageError {
  std::string message;
};

/// What a command accepts: option names with whether they take a value.
struct OptionSpec {
  const char* name;
  bool has_value;
};

/// Parsed arguments: positional words, and options with all their values in order.
struct Args {
  std::vector<std::string> words;
  std::map<std::string, std::vector<std::string>> options;

  bool has(const std::string& name) const { return options.contains(name); }
  std::string get(const std::string& name, const std::string& otherwise = "") const;
  /// A whole number of at least `least`, or an error of usage.
  int number(const std::string& name, int otherwise, int least = 0) const;
  double seconds(const std::string& name, double otherwise) const;  ///< positive, or an error of usage
  const std::vector<std::string>& all(const std::string& name) const;
};

/// "--name value", "--name=value"; "--" ends the options. Throws UsageError naming the nearest option.
Args parse(const std::vector<std::string>& words, const std::vector<OptionSpec>& specs);

/// Splits "name=value"; throws UsageError when there is no '='.
std::pair<std::string, std::string> split_pair(const std::string& text, const std::string& option);

}  // namespace epona::cli
