#include "ops/float_io.h"

#include <cstring>

#include "ops/dispatch.h"

namespace epona {

void convert_floats(DataType from_type, const void* from, DataType to_type, void* to, int64_t n, ThreadPool& pool) {
  if (from_type == to_type) {
    if (n > 0) std::memcpy(to, from, type_bytes(from_type, n));
    return;
  }
  if (!is_float(from_type) || !is_float(to_type))
    fail(Code::not_implemented, "no conversion from ", from_type, " to ", to_type);
  dispatch(from_type, FloatTypes{}, [&]<class From>() {
    dispatch(to_type, FloatTypes{}, [&]<class To>() {
      auto* source = static_cast<const From*>(from);
      auto* target = static_cast<To*>(to);
      pool.parallel_for(n, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          target[i] = static_cast<To>(static_cast<Compute<To>>(static_cast<Compute<From>>(source[i])));
      });
    });
  });
}

namespace {

bool is_half(DataType type) { return type == DataType::float16 || type == DataType::bfloat16; }

}  // namespace

size_t FloatIo::bytes(const ShapeContext& c, std::initializer_list<Shape> outputs) {
  // A kernel that computes in double also converts its float inputs and outputs: eight bytes an element then.
  size_t width = 0;
  DataType first = DataType::undefined;
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i) || !is_float(c.in_type(i))) continue;
    if (first == DataType::undefined) first = c.in_type(i);
    if (is_half(c.in_type(i))) width = std::max<size_t>(width, 4);
    if (c.in_type(i) != first || first == DataType::float64) width = 8;
  }
  if (width == 0) return 0;
  size_t total = 64;
  for (int i = 0; i < c.inputs(); ++i)
    if (c.has(i) && is_float(c.in_type(i))) total += align(static_cast<size_t>(c.in(i).size()) * width);
  for (const Shape& shape : outputs) total += align(static_cast<size_t>(shape.size()) * width);
  return total;
}

const void* FloatIo::convert_in(int i, DataType type) {
  if (!c_->has(i)) return nullptr;
  const Tensor& tensor = c_->in(i);
  if (tensor.type == type) return tensor.data;
  void* to = next_;
  next_ += align(type_bytes(type, tensor.size()));
  convert_floats(tensor.type, tensor.data, type, to, tensor.size(), c_->pool());
  return to;
}

void* FloatIo::place_out(int o, DataType type) {
  if (!c_->wants(o)) return nullptr;
  Tensor& tensor = c_->out(o);
  if (tensor.type == type) return tensor.data;
  outs_[o] = {next_, type};
  next_ += align(type_bytes(type, tensor.size()));
  return outs_[o].data;
}

void FloatIo::store() {
  for (int o = 0; o < kOutputs; ++o)
    if (outs_[o].data) {
      Tensor& tensor = c_->out(o);
      convert_floats(outs_[o].type, outs_[o].data, tensor.type, tensor.data, tensor.size(), c_->pool());
    }
}

}  // namespace epona
