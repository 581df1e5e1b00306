#include "args.h"

#include <algorithm>
#include <charconv>

#include "base/nearest.h"

namespace epona::cli {

std::string Args::get(const std::string& name, const std::string& otherwise) const {
  auto it = options.find(name);
  return it == options.end() ? otherwise : it->second.back();
}

int Args::number(const std::string& name, int otherwise, int least) const {
  if (!has(name)) return otherwise;
  std::string text = get(name);
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UsageError{"--" + name + " needs a whole number, not '" + text + "'"};
  if (value < least)
    throw UsageError{"--" + name + " needs a number of at least " + std::to_string(least) + ", not " + text};
  return value;
}

double Args::seconds(const std::string& name, double otherwise) const {
  if (!has(name)) return otherwise;
  std::string text = get(name);
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0) || value > 1e6)
    throw UsageError{"--" + name + " needs a positive number of seconds, not '" + text + "'"};
  return value;
}

const std::vector<std::string>& Args::all(const std::string& name) const {
  static const std::vector<std::string> none;
  auto it = options.find(name);
  return it == options.end() ? none : it->second;
}

Args parse(const std::vector<std::string>& words, const std::vector<OptionSpec>& specs) {
  Args args;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      args.words.insert(args.words.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (!word.starts_with("--")) {
      args.words.push_back(word);
      continue;
    }
    size_t equals = word.find('=');
    std::string name = word.substr(2, equals == std::string::npos ? std::string::npos : equals - 2);
    auto spec = std::find_if(specs.begin(), specs.end(), [&](const OptionSpec& s) { return name == s.name; });
    if (spec == specs.end()) {
      auto nearest = std::min_element(specs.begin(), specs.end(), [&](const OptionSpec& a, const OptionSpec& b) {
        return edit_distance(name, a.name) < edit_distance(name, b.name);
      });
      throw UsageError{"unknown option --" + name +
                       (nearest == specs.end() ? "" : "; did you mean --" + std::string(nearest->name) + "?")};
    }
    if (!spec->has_value) {
      if (equals != std::string::npos) throw UsageError{"--" + name + " takes no value"};
      args.options[name].push_back("");
    } else if (equals != std::string::npos) {
      args.options[name].push_back(word.substr(equals + 1));
    } else if (i + 1 < words.size()) {
      args.options[name].push_back(words[++i]);
    } else {
      throw UsageError{"--" + name + " needs a value"};
    }
  }
  return args;
}

std::pair<std::string, std::string> split_pair(const std::string& text, const std::string& option) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError{"--" + option + " needs name=value, not '" + text + "'"};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace epona::cli
