#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace epona {

/// Status codes; the numbers are those of the ORT C ABI (OrtErrorCode).
enum class Code : int {
  ok = 0,
  fail = 1,
  invalid_argument = 2,
  no_such_file = 3,
  no_model = 4,
  engine_error = 5,
  runtime_exception = 6,
  invalid_protobuf = 7,
  model_loaded = 8,
  not_implemented = 9,
  invalid_graph = 10,
  ep_fail = 11,
  model_load_canceled = 12,
  model_requires_compilation = 13,
  not_found = 14,
};

/// "FAIL", "INVALID_ARGUMENT", ...: the name that appears in messages.
const char* code_name(Code code);

/// The one exception type inside the library. what() is the bare message; the language bindings add the prefix.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  Code code_;
};

/// Concatenates anything that an ostream prints.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void fail(Code code, const Parts&... parts) {
  throw Error(code, cat(parts...));
}

}  // namespace epona
