#pragma once
#include "providers/options.h"

namespace epona {

OptionSchema cuda_options();
OptionSchema rocm_options();

}  // namespace epona
