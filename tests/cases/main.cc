// Runs .case files (see case_file.h) at every optimisation level and on every instruction-set tier of this CPU.
//   epona_cases [--isa TIER] [--level N] [--provider NAME]... [--expect FILE] [--only TEXT] [-v] FILE_OR_FOLDER...
// --expect: a file with "CASE_FILE: case name  # reason" for every case that fails; others that fail are errors, and so
// are those that pass.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "case_file.h"
#include "kernels/isa.h"
#include "onnx/defs/parser.h"
#include "session/session.h"

namespace epona::test {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::vector<std::string> isas;
  std::vector<OptLevel> levels = {OptLevel::none, OptLevel::basic, OptLevel::extended, OptLevel::all};
  std::vector<std::string> providers;       ///< besides the CPU, at every level
  std::set<std::string> expected_failures;  ///< "file: name"
  std::string only;
  bool verbose = false;
};

std::set<std::string> read_expected(const std::string& path) {
  std::ifstream in(path);
  if (!in) fail(Code::no_such_file, "cannot read ", path);
  std::set<std::string> names;
  for (std::string line; std::getline(in, line);) {
    line.erase(std::min(line.find('#'), line.size()));
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (!line.empty()) names.insert(line);
  }
  return names;
}

std::string parse_model(const std::string& text) {
  ONNX_NAMESPACE::ModelProto model;
  ONNX_NAMESPACE::OnnxParser parser(text.c_str());
  auto status = parser.Parse(model);
  if (!status.IsOK()) fail(Code::invalid_argument, "model text: ", status.ErrorMessage());
  return model.SerializeAsString();
}

std::map<std::string, int> operators(const std::string& bytes) {
  ONNX_NAMESPACE::ModelProto model;
  if (!model.ParseFromString(bytes)) fail(Code::invalid_protobuf, "the optimised model cannot be read");
  std::map<std::string, int> count;
  for (auto& node : model.graph().node())
    if (node.op_type() != "Constant") ++count[node.op_type()];
  return count;
}

std::string list_of(const std::map<std::string, int>& count) {
  std::string text;
  for (auto& [op, n] : count) text += " " + op + (n > 1 ? "*" + std::to_string(n) : "");
  return text.empty() ? " nothing" : text;
}

std::string slurp(const fs::path& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) fail(Code::no_such_file, "cannot read ", path.string());
  std::string bytes(fs::file_size(path), '\0');
  size_t got = std::fread(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  bytes.resize(got);
  return bytes;
}

/// What the case says of the optimised graph.
std::string check_graph(const Case& c, const std::string& before, const fs::path& saved, OptLevel level) {
  if (saved.empty()) return "";
  auto found = operators(slurp(saved));
  if (c.keep) {
    auto wanted = operators(before);
    if (found != wanted) return cat("passes must keep", list_of(wanted), ", found", list_of(found));
  }
  if (!c.becomes.empty() && level == OptLevel::all) {
    std::map<std::string, int> wanted;
    for (auto& op : c.becomes) ++wanted[op];
    if (found != wanted) return cat("passes must make", list_of(wanted), ", found", list_of(found));
  }
  return "";
}

std::string run_wanted(const Case& c, const Session& session) {
  std::vector<std::string> names, wanted;
  std::vector<RuntimeValue> values;
  for (auto& [name, value] : c.feeds) {
    names.push_back(name);
    values.push_back(value);
  }
  for (auto& [name, value] : c.wants) wanted.push_back(name);
  // Twice: the second run finds a frame.
  for (int i = 0; i < 2; ++i) {
    auto results = session.run(names, values, wanted);
    for (size_t o = 0; o < wanted.size(); ++o)
      if (auto text = compare(c.wants[o].second, results[o], c.tolerance); !text.empty())
        return cat("output ", wanted[o], ": ", text, i ? " (second run)" : "");
  }
  return "";
}

/// Empty when the case passes, else what went wrong.
std::string run_case(const Case& c, OptLevel level, const std::string& provider = "") {
  fs::path saved;
  if (provider.empty() && (c.keep || !c.becomes.empty()))
    saved = fs::temp_directory_path() / cat("epona_case_", getpid(), ".onnx");
  std::string problem;
  try {
    std::string bytes = parse_model(c.model);
    SessionOptions options;
    options.optimization_level = level;
    options.intra_op_threads = 2;
    options.log_severity = 3;
    options.optimized_model_path = saved.string();
    if (!provider.empty()) options.providers.push_back({provider, {}});
    // Whatever fails on a provider must not be hidden by the CPU behind it.
    if (!provider.empty()) options.config["session.fallback"] = "forbid";
    Session session(std::as_bytes(std::span(bytes)), options);
    problem = check_graph(c, bytes, saved, level);
    if (problem.empty()) problem = run_wanted(c, session);
    if (problem.empty() && !c.fails.empty()) problem = cat("expected a failure with \"", c.fails, "\"");
  } catch (const std::exception& e) {
    bool expected = !c.fails.empty() && std::strstr(e.what(), c.fails.c_str());
    problem = expected ? "" : c.fails.empty() ? cat("threw: ", e.what()) : cat("threw another error: ", e.what());
  }
  if (!saved.empty()) {
    std::error_code ignored;
    fs::remove(saved, ignored);
  }
  return problem;
}

const char* level_name(OptLevel level) {
  switch (level) {
    case OptLevel::none:
      return "none";
    case OptLevel::basic:
      return "basic";
    case OptLevel::extended:
      return "extended";
    default:
      return "all";
  }
}

std::vector<std::string> find_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (auto& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (auto& entry : fs::recursive_directory_iterator(path))
      if (entry.path().extension() == ".case") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int run_files(const std::vector<std::string>& files, const Settings& settings) {
  int passed = 0, failed = 0, expected = 0;
  std::vector<Case> cases;
  for (auto& file : files) {
    try {
      auto some = read_cases(file);
      cases.insert(cases.end(), some.begin(), some.end());
    } catch (const std::exception& e) {
      std::printf("FAILED %s\n", e.what());
      ++failed;
    }
  }
  for (const Case& c : cases) {
    if (!settings.only.empty() && c.name.find(settings.only) == std::string::npos &&
        c.file.find(settings.only) == std::string::npos)
      continue;
    if (settings.verbose) std::printf("%s:%d: %s\n", c.file.c_str(), c.line, c.name.c_str()), std::fflush(stdout);
    // The same problem at several levels and tiers is told once, with the list of them.
    std::map<std::string, std::string> problems;
    if (c.wants.empty() && c.fails.empty()) problems["neither want nor fails"] = "";
    for (auto& isa : settings.isas) {
      set_isa(isa);
      for (OptLevel level : settings.levels)
        if (auto problem = run_case(c, level); !problem.empty())
          problems[problem] += cat(problems[problem].empty() ? "" : " ", isa, "/", level_name(level));
    }
    for (const std::string& provider : settings.providers)
      for (OptLevel level : settings.levels)
        if (auto problem = run_case(c, level, provider); !problem.empty())
          problems[problem] += cat(problems[problem].empty() ? "" : " ", provider, "/", level_name(level));
    if (settings.expected_failures.contains(cat(c.file, ": ", c.name))) {
      if (!problems.empty()) {
        ++expected;
        continue;
      }
      problems["passes, and is listed as one that fails"] = "";
    }
    for (auto& [problem, where] : problems)
      std::printf("FAILED %s:%d: %s: %s [%s]\n", c.file.c_str(), c.line, c.name.c_str(), problem.c_str(),
                  where.c_str());
    ++(problems.empty() ? passed : failed);
  }
  std::printf("%d passed, %d failed", passed, failed);
  if (expected) std::printf(", %d failed as expected", expected);
  std::printf("\n");
  return failed ? 1 : 0;
}

int main(std::vector<std::string> args) {
  Settings settings;
  std::vector<std::string> paths;
  for (size_t i = 0; i < args.size(); ++i) {
    auto next = [&] { return ++i < args.size() ? args[i] : std::string(); };
    if (args[i] == "--isa")
      settings.isas = {next()};
    else if (args[i] == "--level")
      settings.levels = {static_cast<OptLevel>(std::stoi(next()))};
    else if (args[i] == "--provider")
      settings.providers.push_back(next());
    else if (args[i] == "--expect")
      settings.expected_failures = read_expected(next());
    else if (args[i] == "--only")
      settings.only = next();
    else if (args[i] == "-v")
      settings.verbose = true;
    else
      paths.push_back(args[i]);
  }
  if (settings.isas.empty()) {
    if (const char* forced = std::getenv("EPONA_ISA"); forced && *forced)
      settings.isas = {forced};
    else
      for (const char* name : available_isas()) settings.isas.push_back(name);
  }
  setenv("EPONA_TEST_PROVIDERS", "1", 1);
  return run_files(find_files(paths), settings);
}

}  // namespace
}  // namespace epona::test

int main(int argc, char** argv) {
  try {
    return epona::test::main({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "epona_cases: %s\n", e.what());
    return 2;
  }
}
