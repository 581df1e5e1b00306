#include <cstdio>

#include "base/json.h"
#include "commands.h"

namespace epona::cli {

int command_optimize(const std::vector<std::string>& words) {
  Args args = parse(words, session_specs({}));
  if (args.words.size() != 2) throw UsageError{"an input and an output file are needed"};
  SessionOptions options = session_options(args);
  // Beyond the standard's own operators a model can be read by Epona only, so that is asked for by name.
  if (!args.has("level")) options.optimization_level = OptLevel::basic;
  options.dim_by_symbol = dims_of(args);
  options.optimized_model_path = args.words[1];
  Progress progress("optimizing " + args.words[0]);
  auto session = open_session(args.words[0], options);
  if (args.has("json")) {
    JsonWriter json;
    json.begin_object().field("output", args.words[1]).key("passes").begin_array();
    for (const PassRecord& pass : session->passes())
      json.begin_object()
          .field("name", pass.name)
          .field("rewrites", pass.rewrites)
          .field("ms", pass.milliseconds)
          .end_object();
    json.end_array().end_object();
    std::printf("%s\n", json.text().c_str());
    return 0;
  }
  for (const PassRecord& pass : session->passes())
    if (pass.rewrites > 0)
      std::printf("%-36s %5d rewrites %8.2f ms\n", pass.name.c_str(), pass.rewrites, pass.milliseconds);
  std::printf("written: %s\n", args.words[1].c_str());
  return 0;
}

}  // namespace epona::cli
