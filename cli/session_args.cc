#include <algorithm>

#include "commands.h"

namespace epona::cli {

std::vector<OptionSpec> session_specs(std::vector<OptionSpec> more) {
  for (OptionSpec spec : {OptionSpec{"providers", true},
                          {"option", true},
                          {"threads", true},
                          {"level", true},
                          {"dim", true},
                          {"config", true},
                          {"log", true},
                          {"dump", true},
                          {"disable", true},
                          {"json", false}})
    more.push_back(spec);
  return more;
}

SessionOptions session_options(const Args& args) {
  SessionOptions options;
  options.intra_op_threads = args.number("threads", 0);
  std::string level = args.get("level", "all");
  static const std::map<std::string, OptLevel> levels = {{"none", OptLevel::none},
                                                         {"basic", OptLevel::basic},
                                                         {"extended", OptLevel::extended},
                                                         {"layout", OptLevel::layout},
                                                         {"all", OptLevel::all}};
  auto found = levels.find(level);
  if (found == levels.end())
    throw UsageError{"--level is one of none, basic, extended, layout, all; not '" + level + "'"};
  options.optimization_level = found->second;
  options.log_severity = args.number("log", 2);
  for (const std::string& text : args.all("config")) options.config.insert(split_pair(text, "config"));
  for (const std::string& name : args.all("disable")) options.disabled_passes.insert(name);
  if (std::string dump = args.get("dump"); !dump.empty()) {
    auto [when, pass] = split_pair(dump, "dump");
    if (when != "after") throw UsageError{"--dump needs after=PASS"};
    options.dump_after = pass;
  }
  std::string names = args.get("providers");
  for (size_t at = 0; at < names.size();) {
    size_t comma = std::min(names.find(',', at), names.size());
    options.providers.push_back({names.substr(at, comma - at), {}});
    at = comma + 1;
  }
  for (const std::string& text : args.all("option")) {
    auto [key, value] = split_pair(text, "option");
    const size_t dot = key.find('.');
    const std::string provider = key.substr(0, dot);
    auto request = std::find_if(options.providers.begin(), options.providers.end(),
                                [&](const ProviderRequest& r) { return r.name == provider; });
    if (dot == std::string::npos || request == options.providers.end())
      throw UsageError{"--option needs PROVIDER.KEY=VALUE for a provider named by --providers, not '" + text + "'"};
    request->options[key.substr(dot + 1)] = value;
  }
  return options;
}

std::string model_argument(const Args& args) {
  if (args.words.size() != 1) throw UsageError{"one model file is needed"};
  return args.words[0];
}

std::string typed(const Type& type) {
  if (!type.is_tensor()) return type.to_string();
  std::string text = type_name(type.elem);
  if (!type.shape) return text + "[...]";
  text += '[';
  for (size_t i = 0; i < type.shape->size(); ++i) {
    const Dim& dim = (*type.shape)[i];
    text += (i ? "," : "") + (dim.known() ? std::to_string(dim.value) : dim.symbol.empty() ? "?" : dim.symbol);
  }
  return text + ']';
}

}  // namespace epona::cli
