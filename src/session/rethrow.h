#pragma once
#include <exception>
#include <new>

#include "base/error.h"

namespace epona {

/// In a handler: turns whatever was thrown into Error, the one exception that callers have to know.
[[noreturn]] inline void rethrow_as_error(const char* doing) {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail(Code::fail, "out of memory while ", doing);
  } catch (const std::exception& error) {
    fail(Code::fail, "failed while ", doing, ": ", error.what());
  }
}

}  // namespace epona
