#pragma once
#include <memory>
#include <string>
#include <vector>

#include "args.h"
#include "session/session.h"

namespace epona::cli {

// One command a file; each returns the exit code.
int command_run(const std::vector<std::string>& words);
int command_info(const std::vector<std::string>& words);
int command_explain(const std::vector<std::string>& words);
int command_bench(const std::vector<std::string>& words);
int command_optimize(const std::vector<std::string>& words);
int command_doctor(const std::vector<std::string>& words);
int command_providers(const std::vector<std::string>& words);

/// Options that every command with a session takes: providers, threads, level, dims, config, log.
std::vector<OptionSpec> session_specs(std::vector<OptionSpec> more);
SessionOptions session_options(const Args& args);
/// --dim name=N. Where no input has the symbol, check_dims throws UsageError.
std::map<std::string, int64_t> dims_of(const Args& args);
void check_dims(const std::map<std::string, int64_t>& dims, const std::vector<IoInfo>& inputs);
/// A session of a model file; an override of a dimension that no input has is wrong usage (--dim).
std::unique_ptr<Session> open_session(const std::string& path, SessionOptions options);
/// The one positional argument, a model file.
std::string model_argument(const Args& args);

/// Values for every input: from --input name=file.npy where given, random or zero otherwise (--random, --dim name=N).
std::vector<RuntimeValue> make_feeds(const Session& session, const Args& args, bool need_all);

/// "float[1,3,N]" for an input or output.
std::string typed(const Type& type);

/// Prints "... still running: TEXT, 5 s" lines on stderr while something takes longer than two seconds.
class Progress {
 public:
  explicit Progress(std::string text);
  ~Progress();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace epona::cli
