#include <cstdio>

#include "commands.h"
#include "kernels/isa.h"
#include "providers/doctor.h"

namespace epona::cli {

int command_doctor(const std::vector<std::string>& words) {
  Args args = parse(words, {{"json", false}});
  if (!args.words.empty()) throw UsageError{"doctor takes no arguments besides --json"};
  init_isa();
  Diagnosis diagnosis = diagnose();
  std::printf("%s", args.has("json") ? (to_json(diagnosis) + "\n").c_str() : to_table(diagnosis).c_str());
  return 0;
}

int command_providers(const std::vector<std::string>& words) {
  Args args = parse(words, {{"json", false}, {"markdown", false}});
  if (args.has("markdown")) {
    std::printf("%s", schema_document().c_str());
    return 0;
  }
  std::vector<const ProviderDef*> wanted;
  for (const std::string& name : args.words) {
    const ProviderDef* def = find_provider(name);
    if (!def) throw UsageError{"unknown provider '" + name + "'." + suggest_provider(name)};
    wanted.push_back(def);
  }
  bool all = wanted.empty();
  if (all) wanted = all_providers();
  std::string text;
  for (const ProviderDef* def : wanted) {
    if (args.has("json"))
      text += cat(text.empty() ? "{" : ",", "\"", def->name, "\":", schema_json(*def));
    else
      text += cat(text.empty() ? "" : "\n", schema_table(*def));
  }
  std::printf("%s%s", text.c_str(), args.has("json") ? "}\n" : "");
  return 0;
}

}  // namespace epona::cli
