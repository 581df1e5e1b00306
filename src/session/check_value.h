#pragma once
#include "session/session.h"

namespace epona {

/// Throws InvalidArgument, naming the input, where a value does not have its kind, element type, rank or fixed dims.
void check_value(const IoInfo& info, const RuntimeValue& value);

}  // namespace epona
