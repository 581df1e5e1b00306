#include "ops/elementwise.h"

#include <cstddef>
#include <cstring>

namespace epona {
namespace {

size_t element_bytes(DataType type) { return type_bits(type) / 8; }

std::byte* at(void* base, int64_t index, size_t bytes) {
  return static_cast<std::byte*>(base) + static_cast<size_t>(index) * bytes;
}

/// A run of a 16-bit operand in float: all of it, or one element when it does not advance.
const float* widen_run(DataType type, const void* x, int step, int64_t n, float* buffer) {
  widen_half(type, x, buffer, step ? n : 1);
  return buffer;
}

}  // namespace

void check_elementwise_type(const NodeInfo& info, bool listed, bool has_float) {
  DataType type = info.in_type(0);
  if (!listed && !(has_float && is_half(type)))
    info.refuse(Code::not_implemented, "no implementation for element type ", type);
}

void UnaryKernel::run(const RunContext& c) const {
  const Tensor& x = c.in(0);
  Tensor& y = c.out(0);
  const DataType type = x.type;
  const size_t in_bytes = element_bytes(type), out_bytes = element_bytes(y.type);
  const bool half = is_half(type), half_out = is_half(y.type);
  c.pool().parallel_for(x.size(), ns_per_item_, [&](int64_t begin, int64_t end) {
    if (!half) return loop(type, at(x.data, begin, in_bytes), at(y.data, begin, out_bytes), end - begin);
    float buffer[kHalfBlock], result[kHalfBlock];
    for (int64_t n; begin < end; begin += n) {
      n = std::min(kHalfBlock, end - begin);
      widen_half(type, at(x.data, begin, 2), buffer, n);
      loop(DataType::float32, buffer, half_out ? result : static_cast<void*>(at(y.data, begin, out_bytes)), n);
      if (half_out) narrow_half(y.type, result, at(y.data, begin, 2), n);
    }
  });
}

void BinaryKernel::shapes(ShapeContext& c) const {
  Shape out = c.in(0);
  if (!broadcast_into(out, legacy_.second(c.in(0), c.in(1))))
    c.refuse("shapes ", c.in(0), " and ", c.in(1), " do not broadcast");
  c.out(0, std::move(out));
}

void BinaryKernel::run(const RunContext& c) const {
  const Tensor &x = c.in(0), &y = c.in(1);
  Tensor& z = c.out(0);
  const Shape y_shape = legacy_.second(x.shape, y.shape);
  const DataType type = x.type;
  const size_t in_bytes = element_bytes(type), out_bytes = element_bytes(z.type);
  const bool half = is_half(type), half_out = is_half(z.type);
  const Broadcast<2> broadcast(z.shape, {&x.shape, &y_shape});
  const int step_x = broadcast.step(0), step_y = broadcast.step(1);
  c.pool().parallel_for(broadcast.size(), ns_per_item_, [&](int64_t begin, int64_t end) {
    if (!half) {
      broadcast.walk(begin, end, [&](int64_t out, const int64_t* in, int64_t n) {
        loop(type, at(x.data, in[0], in_bytes), step_x, at(y.data, in[1], in_bytes), step_y, at(z.data, out, out_bytes),
             n);
      });
      return;
    }
    float left[kHalfBlock], right[kHalfBlock], result[kHalfBlock];
    broadcast.walk(begin, end, [&](int64_t out, const int64_t* in, int64_t run) {
      for (int64_t done = 0, n; done < run; done += n) {
        n = std::min(kHalfBlock, run - done);
        widen_run(type, at(x.data, in[0] + done * step_x, 2), step_x, n, left);
        widen_run(type, at(y.data, in[1] + done * step_y, 2), step_y, n, right);
        void* to = at(z.data, out + done, out_bytes);
        loop(DataType::float32, left, step_x, right, step_y, half_out ? result : to, n);
        if (half_out) narrow_half(z.type, result, to, n);
      }
    });
  });
}

void VariadicKernel::run(const RunContext& c) const {
  // Blocks of the output take all operands in turn while they are in the cache; 16-bit floats stay in float until the end.
  constexpr int64_t kBlock = 2048;
  Tensor& z = c.out(0);
  const DataType type = z.type;
  const bool half = is_half(type);
  const DataType compute = half ? DataType::float32 : type;
  const size_t bytes = element_bytes(compute);
  c.pool().parallel_for(z.size(), ns_per_item_ * c.inputs(), [&](int64_t begin, int64_t end) {
    float sums[kHalfBlock], operand[kHalfBlock];
    for (int64_t n; begin < end; begin += n) {
      n = std::min(half ? kHalfBlock : kBlock, end - begin);
      std::byte* to = half ? reinterpret_cast<std::byte*>(sums) : at(z.data, begin, bytes);
      for (int i = 0; i < c.inputs(); ++i) {
        const Tensor& x = c.in(i);
        const Broadcast<1> broadcast(z.shape, {&x.shape});
        const int step = broadcast.step(0);
        broadcast.walk(begin, begin + n, [&](int64_t out, const int64_t* in, int64_t run) {
          std::byte* result = to + static_cast<size_t>(out - begin) * bytes;
          const void* from = at(x.data, in[0], half ? 2 : bytes);
          if (half) from = widen_run(type, from, step, run, operand);
          if (i > 0) {
            loop(compute, result, 1, from, step, result, run);
          } else if (step) {
            std::memmove(result, from, static_cast<size_t>(run) * bytes);
          } else {
            for (int64_t k = 0; k < run; ++k) std::memcpy(result + static_cast<size_t>(k) * bytes, from, bytes);
          }
        });
      }
      finish(compute, to, n, c.inputs());
      if (half) narrow_half(type, sums, at(z.data, begin, 2), n);
    }
  });
}

}  // namespace epona
