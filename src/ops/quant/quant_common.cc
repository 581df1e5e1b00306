#include "ops/quant/quant_common.h"

namespace epona {

ScaleMap::ScaleMap(const Node& node, const Shape& shape, const Shape& scale, int64_t axis, int64_t block)
    : size_(shape.size()) {
  const int64_t rank = shape.rank();
  if (scale.rank() == 0 || (scale.rank() == 1 && scale[0] == 1 && block == 0)) return;
  auto refuse = [&](const auto&... parts) { fail(Code::invalid_argument, describe(node), ": ", parts...); };
  // A rank-1 input has only one axis, whatever the attribute says.
  if (rank == 1 && (axis < -1 || axis > 0)) axis = 0;
  if (axis < -rank || axis >= rank) refuse("axis ", axis, " is out of range for input of shape ", shape);
  const int at = static_cast<int>(axis < 0 ? axis + rank : axis);
  length_ = shape[at];
  inner_ = shape.size(at + 1, shape.rank());
  if (block == 0) {
    kind_ = Kind::axis;
    if (scale.rank() != 1 || scale[0] != length_)
      refuse("scale of shape ", scale, ", expected {", length_, "} for axis ", axis, " of input shape ", shape);
    return;
  }
  kind_ = Kind::block;
  block_ = block;
  Shape expected = shape;
  if (block < 0) refuse("block_size ", block, " is negative");
  expected[at] = blocks_ = (length_ + block - 1) / block;
  if (!(scale == expected))
    refuse("scale of shape ", scale, ", expected ", expected, " for block_size ", block, " along axis ", axis,
           " of input shape ", shape);
}

void ScaleMap::find(int64_t at, int64_t& scale, int64_t& step, int64_t& count) const {
  if (kind_ == Kind::tensor) {
    scale = step = 0;
    count = size_ - at;
    return;
  }
  const int64_t i = at % inner_, row = at / inner_, d = row % length_;
  if (kind_ == Kind::axis) {
    scale = d;
    step = inner_ == 1;
    count = inner_ == 1 ? length_ - d : inner_ - i;
    return;
  }
  scale = (row / length_ * blocks_ + d / block_) * inner_ + i;
  step = inner_ != 1;
  count = inner_ == 1 ? std::min(block_ - d % block_, length_ - d) : inner_ - i;
}

bool quant_range(DataType type, QuantRange& range) {
  switch (type) {
    case DataType::uint8:
      range = {0, 255};
      return true;
    case DataType::int8:
      range = {-128, 127};
      return true;
    case DataType::uint16:
      range = {0, 65535};
      return true;
    case DataType::int16:
      range = {-32768, 32767};
      return true;
    case DataType::uint4:
      range = {0, 15};
      return true;
    case DataType::int4:
      range = {-8, 7};
      return true;
    case DataType::uint2:
      range = {0, 3};
      return true;
    case DataType::int2:
      range = {-2, 1};
      return true;
    default:
      return false;
  }
}

void load_quantized(DataType type, const void* from, int64_t begin, int64_t count, int32_t* to) {
  // Packed types may begin inside a byte here: runs of scales do not care for bytes.
  if (is_subbyte(type)) {
    uint8_t codes[kConvertBlock];
    const bool is_signed = type == DataType::int4 || type == DataType::int2;
    for (int64_t n; count > 0; count -= n, begin += n, to += n) {
      n = std::min(kConvertBlock, count);
      unpack_elements(type, from, begin, n, codes);
      for (int64_t i = 0; i < n; ++i) to[i] = is_signed ? static_cast<int8_t>(codes[i]) : codes[i];
    }
    return;
  }
  const char* start = static_cast<const char*>(from) + static_cast<size_t>(begin) * type_bits(type) / 8;
  convert_elements(type, start, DataType::int32, to, 0, count);
}

float scalar_scale(const Tensor& tensor) {
  float value;
  load_floats(tensor.type, tensor.data, 0, 1, &value);
  return value;
}

int32_t scalar_zero(const Tensor* tensor) {
  int32_t value = 0;
  if (tensor) load_quantized(tensor->type, tensor->data, 0, 1, &value);
  return value;
}

}  // namespace epona
