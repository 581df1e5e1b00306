#include "base/error.h"

namespace epona {

const char* code_name(Code code) {
  switch (code) {
    case Code::ok:
      return "SUCCESS";
    case Code::fail:
      return "FAIL";
    case Code::invalid_argument:
      return "INVALID_ARGUMENT";
    case Code::no_such_file:
      return "NO_SUCHFILE";
    case Code::no_model:
      return "NO_MODEL";
    case Code::engine_error:
      return "ENGINE_ERROR";
    case Code::runtime_exception:
      return "RUNTIME_EXCEPTION";
    case Code::invalid_protobuf:
      return "INVALID_PROTOBUF";
    case Code::model_loaded:
      return "MODEL_LOADED";
    case Code::not_implemented:
      return "NOT_IMPLEMENTED";
    case Code::invalid_graph:
      return "INVALID_GRAPH";
    case Code::ep_fail:
      return "EP_FAIL";
    case Code::model_load_canceled:
      return "MODEL_LOAD_CANCELED";
    case Code::model_requires_compilation:
      return "MODEL_REQUIRES_COMPILATION";
    case Code::not_found:
      return "NOT_FOUND";
  }
  return "UNKNOWN";
}

}  // namespace epona
