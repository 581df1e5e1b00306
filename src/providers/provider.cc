#include "providers/provider.h"

namespace epona {

const char* reason_name(Reason reason) {
  switch (reason) {
    case Reason::none:
      return "";
    case Reason::no_kernel:
      return "no kernel";
    case Reason::type:
      return "type";
    case Reason::opset:
      return "opset";
    case Reason::attribute:
      return "attribute";
    case Reason::dynamic_shape:
      return "dynamic shape";
    case Reason::too_small:
      return "too small";
    case Reason::island:
      return "island";
    case Reason::memory_budget:
      return "memory budget";
    case Reason::user_option:
      return "user option";
    case Reason::better_on_cpu:
      return "better on CPU";
  }
  return "";
}

}  // namespace epona
