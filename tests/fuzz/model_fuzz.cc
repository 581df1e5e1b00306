// libFuzzer: the bytes of a model, loaded and run once. `make fuzz` starts from the models of all .case files.
// An odd number of bytes is loaded with all optimisations, an even one with none.
#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/damaged.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static epona::test::Watchdog watchdog;
  epona::SessionOptions options;
  options.intra_op_threads = 1;
  options.log_severity = 4;
  options.optimization_level = size % 2 ? epona::OptLevel::all : epona::OptLevel::none;
  try {
    epona::Session session(std::as_bytes(std::span(data, size)), options);
    watchdog.run(session);
  } catch (const epona::Error&) {
  }
  return 0;
}
