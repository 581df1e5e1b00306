#include "ops/control/control_util.h"

#include <algorithm>

#include "kernels/strided_copy.h"

namespace epona {

RuntimeValue owned(RuntimeValue value) {
  if (value.kind == RuntimeValue::Kind::tensor && !value.tensor.owner) value.tensor = value.tensor.clone();
  return value;
}

RuntimeValue own_copy(const RuntimeValue& value) {
  return value.kind == RuntimeValue::Kind::tensor ? RuntimeValue(value.tensor.clone()) : value;
}

void check_terminate(const RunContext& c) {
  if (c.env().terminate && c.env().terminate->load(std::memory_order_relaxed))
    fail(Code::fail, "Exiting due to terminate flag being set to true.");
}

void RowCollector::add(const RunContext& c, int output, const Tensor& row, int64_t expected) {
  if (count_ == 0) {
    row_ = row.shape;
    // A trip count may be a mere upper bound: begin with at most 1 MB.
    int64_t bytes = std::max<int64_t>(static_cast<int64_t>(row.bytes()), 1);
    Shape shape = row_;
    shape.insert(0, std::max<int64_t>(std::min(expected, (int64_t{1} << 20) / bytes), 1));
    rows_ = Tensor::allocate(row.type, shape);
  } else if (row.shape != row_ || row.type != rows_.type) {
    c.refuse("output ", output, " of the body changed from ", rows_.type, row_, " to ", row.type, row.shape);
  }
  int64_t size = row.size();
  if (count_ == rows_.shape[0]) {
    Shape shape = rows_.shape;
    shape[0] = count_ * 2 < expected ? count_ * 2 : std::max(expected, count_ * 2);
    Tensor grown = Tensor::allocate(row.type, shape);
    copy_elements(row.type, count_ * size, rows_.data, 0, grown.data, 0);
    rows_ = std::move(grown);
  }
  copy_elements(row.type, size, row.data, 0, rows_.data, count_ * size);
  ++count_;
}

Tensor RowCollector::finish(const Type& row_type) {
  if (count_ == 0) {
    Shape shape{0};
    if (row_type.shape)
      for (const Dim& dim : *row_type.shape) shape.push_back(dim.known() ? dim.value : 0);
    return Tensor::allocate(row_type.elem, shape);
  }
  if (count_ == rows_.shape[0]) return std::move(rows_);
  Shape shape = rows_.shape;
  shape[0] = count_;
  Tensor rows = Tensor::allocate(rows_.type, shape);
  copy_elements(rows.type, rows.size(), rows_.data, 0, rows.data, 0);
  return rows;
}

}  // namespace epona
