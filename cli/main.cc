#include <epona/version.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "commands.h"
#include "usage.h"

namespace {

int dispatch(const std::string& command, const std::vector<std::string>& words) {
  using namespace epona::cli;
  if (command == "run") return command_run(words);
  if (command == "info") return command_info(words);
  if (command == "explain") return command_explain(words);
  if (command == "bench") return command_bench(words);
  if (command == "optimize") return command_optimize(words);
  if (command == "doctor") return command_doctor(words);
  if (command == "providers") return command_providers(words);
  throw UsageError{"unknown command '" + command + "'." + suggest_command(command)};
}

bool asks_for_help(const std::string& word) { return word == "--help" || word == "-h"; }

int run_command(std::vector<std::string> words) {
  if (words.empty() || asks_for_help(words[0]) || words[0] == "help") {
    std::string command = words.size() > 1 ? words[1] : "";
    std::string text = command.empty() ? epona::cli::usage() : epona::cli::usage(command);
    if (text.empty()) text = epona::cli::usage();
    std::fputs(text.c_str(), words.empty() ? stderr : stdout);
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") {
    std::printf("epona %s\n", epona::version().data());
    return 0;
  }
  std::string command = words[0];
  words.erase(words.begin());
  auto options_end = std::find(words.begin(), words.end(), "--");
  if (std::string text = epona::cli::usage(command);
      !text.empty() && std::any_of(words.begin(), options_end, asks_for_help)) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  try {
    return dispatch(command, words);
  } catch (const epona::cli::UsageError& error) {
    bool known = !epona::cli::usage(command).empty();
    std::fprintf(stderr, "epona %s: %s\nSee epona %s--help.\n", command.c_str(), error.message.c_str(),
                 known ? (command + " ").c_str() : "");
    return 2;
  } catch (const epona::Error& error) {
    std::fprintf(stderr, "epona %s: %s: %s\n", command.c_str(), epona::code_name(error.code()), error.what());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "epona %s: %s\n", command.c_str(), error.what());
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  int code = run_command({argv + 1, argv + argc});
  // What was not written was not said: a full disk, or a standard output that is closed.
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    std::fprintf(stderr, "epona: cannot write to standard output: %s\n", std::strerror(errno ? errno : EIO));
    return code == 0 ? 1 : code;
  }
  return code;
}
