#pragma once
#include "providers/options.h"

namespace epona {

OptionSchema tensorrt_options();

}  // namespace epona
