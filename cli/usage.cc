#include "usage.h"

#include <vector>

#include "base/error.h"
#include "base/nearest.h"

namespace epona::cli {
namespace {

struct CommandHelp {
  const char* name;
  const char* synopsis;
  const char* summary;
  const char* details;  ///< its own options
  bool session;         ///< takes the options of a session
};

constexpr const char* kFeeds =
    "  --input name=FILE.npy  an input; may be given once for each input\n"
    "  --random               make up the inputs that are not given\n"
    "  --dim name=N           size of a symbolic dimension of made-up inputs (default 1)\n"
    "  --seed N               seed of made-up inputs (default 1234)\n";

constexpr const char* kDims = "  --dim name=N           fix a symbolic dimension\n";

constexpr const char* kSessionOptions =
    "  --providers A,B        providers in order of preference (default CPUExecutionProvider)\n"
    "  --option P.K=V         an option of provider P; `epona providers P` lists them\n"
    "  --threads N            threads (default 0: as many as this process may use)\n"
    "  --level L              none, basic, extended, layout, all (default all; optimize: basic)\n"
    "  --config key=value     a session configuration entry\n"
    "  --disable PASS         a graph pass that must not run\n"
    "  --dump after=PASS      print the graph (stderr) after a pass\n"
    "  --log N                0 verbose, 1 info, 2 warning, 3 error, 4 fatal\n";

constexpr const char* kJson = "  --json                 machine-readable output\n";

constexpr const char* kEnd =
    "\nEPONA_ISA=sse2|avx2|avx512|avx512_vnni forces an instruction-set tier.\n"
    "Exit codes: 0 done, 1 the model or a file is at fault, 2 wrong usage.\n";

const CommandHelp kCommands[] = {
    {"run", "run MODEL [--input name=FILE.npy ...] [--random] [--save FOLDER]", "run a model once",
     "  --save FOLDER          write each output as FOLDER/NAME.npy\n", true},
    {"info", "info MODEL", "inputs, outputs, operators, metadata", "", false},
    {"explain", "explain MODEL [--html FILE]", "every node: its provider, and why not another (nothing is run)",
     "  --html FILE            write the report as one page\n"
     "  --rows N               print at most N nodes\n",
     true},
    {"bench", "bench MODEL [--input ...] [--runs N | --seconds S]", "latency, and where it goes",
     "  --runs N               how many runs\n"
     "  --seconds S            how long to run (default 2)\n"
     "  --warmup N             runs before those that count (default 3)\n"
     "  --profile              the time of each operator and node\n",
     true},
    {"optimize", "optimize IN OUT", "write the optimized model", "", true},
    {"doctor", "doctor", "which providers can run here, and what the others need", "", false},
    {"providers", "providers [NAME ...]", "the options of providers",
     "  --markdown             the page docs/providers.md\n", false},
};

}  // namespace

std::string usage() {
  std::string text = "epona: runs ONNX models\n\n";
  for (const CommandHelp& command : kCommands) {
    std::string line = cat("  epona ", command.synopsis);
    line += line.size() < 37 ? std::string(37 - line.size(), ' ') : "\n" + std::string(37, ' ');
    text += line + command.summary + '\n';
  }
  text += cat("\n`epona COMMAND --help` has the options of a command. Those of run, explain, bench and optimize:\n",
              kSessionOptions, "Of run and bench:\n", kFeeds, "Of explain and optimize:\n", kDims, "Of all:\n", kJson,
              "  --help                 this text, or that of the command\n"
              "  --version              the version\n",
              kEnd);
  return text;
}

std::string usage(std::string_view name) {
  for (const CommandHelp& command : kCommands) {
    if (name != command.name) continue;
    bool feeds = name == "run" || name == "bench";
    return cat("epona ", command.synopsis, "\n\n", command.summary, "\n\n", command.details, feeds ? kFeeds : "",
               command.session && !feeds ? kDims : "", command.session ? kSessionOptions : "", kJson, kEnd);
  }
  return "";
}

std::string suggest_command(std::string_view word) {
  std::vector<std::string_view> names;
  for (const CommandHelp& command : kCommands) names.push_back(command.name);
  std::string suggestion = did_you_mean(word, names);
  return suggestion.empty() ? " Commands: run, info, explain, bench, optimize, doctor, providers" : suggestion;
}

}  // namespace epona::cli
