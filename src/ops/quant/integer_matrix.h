#pragma once
#include "ops/kernel.h"
#include "ops/multiply.h"

namespace epona {

/// A stack of 8-bit matrices less their zero points, as int16: {batch, rows, cols}. The zero point has one element, one for
/// each row (`by_row`) or one for each column, or one for each row or column of each matrix of the stack.
void subtract_zeros(const Node& node, const Tensor& x, const Tensor* zeros, int64_t rows, int64_t cols, bool by_row,
                    int16_t* to);
/// Whether a scale or zero point of that shape fits: 1, `length` or batch * `length` elements.
bool fits_lines(const Shape& shape, int64_t batch, int64_t length);
/// Index into such a parameter for a line of a matrix of the stack.
inline int64_t line_index(int64_t count, int64_t matrix, int64_t line, int64_t length) {
  return count == 1 ? 0 : count == length ? line : matrix * length + line;
}

/// Bytes that the int16 copies of two inputs take, for the workspace; the second starts at int16_t index second_at().
struct IntegerPair {
  int64_t first, second;
  IntegerPair(int64_t a, int64_t b) : first((a + 31) / 32 * 32), second((b + 31) / 32 * 32) {}
  size_t bytes() const { return type_bytes(DataType::int16, checked_add(first, second)); }
};

}  // namespace epona
