#pragma once
#include <cstdint>

namespace epona {

/// out[r][c] = in[c][r] for r < rows, c < columns, elements of 1, 2, 4, 8 or 16 bytes. `in_stride` is the distance in
/// bytes between columns of the input, `out_stride` that between rows of the output; inside them elements are dense.
void transpose2d(int element_bytes, int64_t rows, int64_t columns, const char* in, int64_t in_stride, char* out,
                 int64_t out_stride);

}  // namespace epona
