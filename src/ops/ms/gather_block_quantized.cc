#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

using ScaleTypes = Types<float, Float16, BFloat16>;

/// GatherBlockQuantized: rows of a block-quantised matrix (an embedding table), dequantised on the way. Bytes hold two
/// 4-bit values along the last dim, the low half first; bits=8: one.
class GatherBlockQuantized final : public Kernel {
 public:
  explicit GatherBlockQuantized(const NodeInfo& info)
      : gather_axis_(info.attr("gather_axis", 0)),
        quantize_axis_(info.attr("quantize_axis", 1)),
        block_(info.attr("block_size", 128)),
        type_(info.in_type(0)) {
    bits_ = type_ == DataType::uint8 ? static_cast<int>(info.attr("bits", 4)) : 4;
    if ((bits_ != 4 && bits_ != 8) || block_ < 1)
      info.refuse(Code::not_implemented, "bits ", bits_, ", block_size ", block_);
    if (type_ != DataType::uint8 && type_ != DataType::uint4 && type_ != DataType::int4)
      info.refuse(Code::not_implemented, "type ", type_);
    if (!contains(ScaleTypes{}, info.in_type(2)))
      info.refuse(Code::not_implemented, "scales of type ", info.in_type(2));
  }
  void shapes(ShapeContext& c) const override {
    Shape data = logical(c.in(0));
    const Shape &indices = c.in(1), &scales = c.in(2);
    int rank = data.rank(), gather = resolve_axis(c, gather_axis_, rank),
        quantize = resolve_axis(c, quantize_axis_, rank);
    if (gather == quantize) c.refuse("gather_axis and quantize_axis are both ", gather);
    Shape wanted = data;
    wanted[quantize] = (data[quantize] + block_ - 1) / block_;
    if (!(scales == wanted)) c.refuse("scales of shape ", scales, ", expected ", wanted);
    if (c.has(3)) {
      Shape zero_points = wanted;
      if (type_ == DataType::uint8 && bits_ == 4) zero_points[rank - 1] = (wanted[rank - 1] + 1) / 2;
      if (!(c.in(3) == zero_points)) c.refuse("zero_points of shape ", c.in(3), ", expected ", zero_points);
    }
    Shape out;
    for (int i = 0; i < gather; ++i) out.push_back(data[i]);
    for (int64_t dim : indices) out.push_back(dim);
    for (int i = gather + 1; i < rank; ++i) out.push_back(data[i]);
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    dispatch(c.in(2).type, ScaleTypes{}, [&]<class T>() { run_as<T>(c); });
  }

 private:
  Shape logical(Shape shape) const {
    if (type_ == DataType::uint8 && bits_ == 4 && shape.rank()) shape[shape.rank() - 1] *= 2;
    return shape;
  }
  int value(const uint8_t* bytes, int64_t i) const {
    if (bits_ == 8) return bytes[i];
    int v = bytes[i / 2] >> (i % 2 * 4) & 15;
    return type_ == DataType::int4 ? (v ^ 8) - 8 : v;
  }

  template <class T>
  void run_as(const RunContext& c) const {
    const Shape data = logical(c.in(0).shape);
    const Tensor& indices = c.in(1);
    int rank = data.rank(), gather = resolve_axis(c, gather_axis_, rank),
        quantize = resolve_axis(c, quantize_axis_, rank);
    int64_t outer = data.size(0, gather), dim = data[gather], inner = data.size(gather + 1, rank),
            count = indices.size();
    int64_t inside = data.size(quantize + 1, rank), length = data[quantize], blocks = (length + block_ - 1) / block_;
    // Zero points packed in bytes are padded to whole bytes at the end of each row of the last dim.
    const Shape& scale_shape = c.in(2).shape;
    int64_t row = scale_shape.back(), packed_row = type_ == DataType::uint8 && bits_ == 4 ? (row + 1) / 2 * 2 : row;
    const uint8_t *bytes = c.in(0).as<uint8_t>(), *zero_points = c.data<uint8_t>(3);
    const T* scales = c.data<T>(2);
    T* out = c.out_data<T>(0);
    const int middle = type_ == DataType::uint8 ? 1 << (bits_ - 1) : 0;
    check_index_type(c, indices, "indices");
    c.pool().parallel_for(outer * count, static_cast<double>(inner) * 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t at = int_at(indices, i % count);
        if (at < -dim || at >= dim) c.refuse("index ", at, " is out of range [", -dim, ",", dim - 1, "]");
        int64_t from = (i / count * dim + (at < 0 ? at + dim : at)) * inner;
        for (int64_t j = 0; j < inner; ++j) {
          int64_t flat = from + j, in_block = flat / inside % length / block_;
          int64_t scale = (flat / inside / length * blocks + in_block) * inside + flat % inside;
          int zero = zero_points ? value(zero_points, scale / row * packed_row + scale % row) : middle;
          out[i * inner + j] = T(static_cast<float>(value(bytes, flat) - zero) * static_cast<float>(scales[scale]));
        }
      }
    });
  }

  int64_t gather_axis_, quantize_axis_, block_;
  DataType type_;
  int bits_ = 4;
};

}  // namespace
}  // namespace epona

EPONA_OPS(gather_block_quantized) {
  r.add({.name = "GatherBlockQuantized", .domain = "com.microsoft", .make = make_kernel<GatherBlockQuantized>});
}
