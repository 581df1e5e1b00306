#include <algorithm>

#include "base/nearest.h"
#include "commands.h"
#include "model/model.h"
#include "providers/registry.h"

namespace epona::cli {
namespace {

std::string known_pass(const std::string& name, const char* option) {
  std::vector<std::string_view> names;
  for (const Pass& pass : all_passes()) names.push_back(pass.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  std::string list;
  for (std::string_view known : names) list += cat(list.empty() ? "" : ", ", known);
  throw UsageError{cat("--", option, ": there is no pass '", name, "'.", did_you_mean(name, names), " Passes: ", list)};
}

ProviderRequest& request_of(SessionOptions& options, const std::string& name, const std::string& text) {
  auto found = std::find_if(options.providers.begin(), options.providers.end(),
                            [&](const ProviderRequest& request) { return request.name == name; });
  if (found != options.providers.end()) return *found;
  if (options.providers.empty() && name == "CPUExecutionProvider")
    return options.providers.emplace_back(ProviderRequest{name, {}});
  throw UsageError{"--option " + text + ": provider '" + name + "' is not one of --providers." +
                   suggest_provider(name)};
}

}  // namespace

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
  if (options.log_severity > 4) throw UsageError{"--log is 0 to 4, not " + args.get("log")};
  for (const std::string& text : args.all("config")) options.config.insert(split_pair(text, "config"));
  for (const std::string& name : args.all("disable")) options.disabled_passes.insert(known_pass(name, "disable"));
  if (std::string dump = args.get("dump"); !dump.empty()) {
    auto [when, pass] = split_pair(dump, "dump");
    if (when != "after") throw UsageError{"--dump needs after=PASS"};
    options.dump_after = known_pass(pass, "dump");
  }
  std::string names = args.get("providers");
  for (size_t at = 0; at < names.size();) {
    size_t comma = std::min(names.find(',', at), names.size());
    std::string name = names.substr(at, comma - at);
    if (!find_provider(name) && !is_foreign_provider(name))
      throw UsageError{"unknown provider '" + name + "'." + suggest_provider(name) + " `epona doctor` lists them"};
    options.providers.push_back({name, {}});
    at = comma + 1;
  }
  for (const std::string& text : args.all("option")) {
    auto [key, value] = split_pair(text, "option");
    size_t dot = key.find('.');
    if (dot == std::string::npos) throw UsageError{"--option needs PROVIDER.KEY=VALUE, not '" + text + "'"};
    request_of(options, key.substr(0, dot), text).options[key.substr(dot + 1)] = value;
  }
  return options;
}

std::map<std::string, int64_t> dims_of(const Args& args) {
  std::map<std::string, int64_t> dims;
  for (const std::string& text : args.all("dim")) {
    auto [name, value] = split_pair(text, "dim");
    if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos || value.size() > 9)
      throw UsageError{"--dim " + name + " needs a whole number below 1000000000, not '" + value + "'"};
    dims[name] = std::stoll(value);
  }
  return dims;
}

void check_dims(const std::map<std::string, int64_t>& dims, const std::vector<IoInfo>& inputs) {
  std::vector<std::string> known;
  for (const IoInfo& input : inputs)
    for (const Dim& dim : input.type.shape.value_or(std::vector<Dim>()))
      if (!dim.symbol.empty() && std::find(known.begin(), known.end(), dim.symbol) == known.end())
        known.push_back(dim.symbol);
  std::string list;
  for (const std::string& name : known) list += cat(list.empty() ? "" : ", ", "'", name, "'");
  for (auto& [name, size] : dims)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError{cat("--dim: no input has a symbolic dimension '", name, "'; ",
                           known.empty() ? "all of their dimensions are fixed or nameless" : "they have: ", list)};
}

std::unique_ptr<Session> open_session(const std::string& path, SessionOptions options) {
  options.refuse_unknown_dims = true;
  try {
    return std::make_unique<Session>(std::filesystem::path(path), options);
  } catch (const UnknownDimension& error) {
    throw UsageError{cat("--dim: ", error.what())};
  }
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
