#include "model/ms_schemas.h"

namespace epona {

void ms_quant_schemas([[maybe_unused]] MsOps& ops) {}

}  // namespace epona
