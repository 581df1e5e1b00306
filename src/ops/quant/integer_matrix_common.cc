#include "ops/convert.h"
#include "ops/quant/integer_matrix.h"
#include "ops/quant/quant_common.h"

namespace epona {

bool fits_lines(const Shape& shape, int64_t batch, int64_t length) {
  int64_t size = shape.size();
  return size == 1 || size == length || size == checked_mul(batch, length);
}

namespace {

template <class T>
void subtract(const T* x, const T* zeros, int64_t zero_count, int64_t batch, int64_t rows, int64_t cols, bool by_row,
              int16_t* to) {
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t r = 0; r < rows; ++r, x += cols, to += cols) {
      if (by_row || zero_count <= 1) {
        const int zero = zeros ? zeros[line_index(zero_count, b, r, rows)] : 0;
        for (int64_t i = 0; i < cols; ++i) to[i] = static_cast<int16_t>(x[i] - zero);
      } else {
        const T* line = zeros + line_index(zero_count, b, 0, cols);
        for (int64_t i = 0; i < cols; ++i) to[i] = static_cast<int16_t>(x[i] - line[i]);
      }
    }
}

}  // namespace

void subtract_zeros(const Node& node, const Tensor& x, const Tensor* zeros, int64_t rows, int64_t cols, bool by_row,
                    int16_t* to) {
  const int64_t matrix = rows * cols, batch = matrix ? x.size() / matrix : 0, count = zeros ? zeros->size() : 1;
  if (zeros && (zeros->type != x.type || !fits_lines(zeros->shape, batch, by_row ? rows : cols)))
    fail(Code::invalid_argument, describe(node), ": zero point of type ", zeros->type, " and shape ", zeros->shape,
         " does not fit the input of type ", x.type, " and shape ", x.shape);
  if (x.type == DataType::uint8)
    subtract(x.as<uint8_t>(), zeros ? zeros->as<uint8_t>() : nullptr, count, batch, rows, cols, by_row, to);
  else
    subtract(x.as<int8_t>(), zeros ? zeros->as<int8_t>() : nullptr, count, batch, rows, cols, by_row, to);
}

}  // namespace epona
