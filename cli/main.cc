#include <epona/version.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "commands.h"

namespace {

constexpr const char* kUsage =
    R"(epona: runs ONNX models

  epona run MODEL [--input name=FILE.npy ...] [--random] [--dim name=N ...] [--save FOLDER]
  epona info MODEL                     inputs, outputs, operators, metadata
  epona explain MODEL [--html FILE]    every node: its provider, and why not another (nothing is run)
  epona bench MODEL [--input ...] [--runs N | --seconds N] [--profile]
  epona optimize IN OUT                write the optimized model (default --level basic)
  epona doctor [--json]                which providers can run here, and what the others need
  epona providers [NAME] [--json]      the options of providers

Options of all but info:
  --providers A,B   providers in order of preference (default CPUExecutionProvider)
  --option P.K=V    an option of provider P; `epona providers P` lists them
  --threads N       threads (default: as many as this process may use)
  --level L         none, basic, extended, layout, all (default all)
  --dim name=N      size of a symbolic dimension of made-up inputs (default 1)
  --seed N          seed of made-up inputs (default 1234)
  --config key=val  a session configuration entry
  --disable PASS    a graph pass that must not run
  --dump after=PASS print the graph (stderr) after a pass
  --log N           0 verbose, 1 info, 2 warning, 3 error, 4 fatal
  --json            machine-readable output (also for info)

EPONA_ISA=sse2|avx2|avx512|avx512_vnni forces an instruction-set tier.
Exit codes: 0 done, 1 the model or a file is at fault, 2 wrong usage.
)";

int dispatch(const std::string& command, const std::vector<std::string>& words) {
  using namespace epona::cli;
  if (command == "run") return command_run(words);
  if (command == "info") return command_info(words);
  if (command == "explain") return command_explain(words);
  if (command == "bench") return command_bench(words);
  if (command == "optimize") return command_optimize(words);
  if (command == "doctor") return command_doctor(words);
  if (command == "providers") return command_providers(words);
  throw UsageError{"unknown command '" + command + "'"};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::fputs(kUsage, stdout);
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") {
    std::printf("epona %s\n", epona::version().data());
    return 0;
  }
  std::string command = words[0];
  words.erase(words.begin());
  try {
    return dispatch(command, words);
  } catch (const epona::cli::UsageError& error) {
    std::fprintf(stderr, "epona %s: %s\nSee epona --help.\n", command.c_str(), error.message.c_str());
    return 2;
  } catch (const epona::Error& error) {
    std::fprintf(stderr, "epona %s: %s: %s\n", command.c_str(), epona::code_name(error.code()), error.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "epona %s: %s\n", command.c_str(), error.what());
    return 1;
  }
}
