#include "base/half_block.h"

#include "kernels/convert.h"

namespace epona {

void widen_half(DataType type, const void* from, float* to, int64_t n) { to_float(type, from, to, n); }
void narrow_half(DataType type, const float* from, void* to, int64_t n) { from_float(type, from, to, n); }

}  // namespace epona
