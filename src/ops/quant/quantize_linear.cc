#include "base/half_block.h"
#include "ops/quant/quant_common.h"
#include "ops/registry.h"
#include "ops/type_attribute.h"

namespace epona {
namespace {

/// y = saturate(round_half_even(x / scale) + zero_point), or the nearest small float of x / scale.
/// Blocks of 256 elements begin at multiples of four, so that packed types are written by whole bytes.
class QuantizeLinear final : public Kernel {
 public:
  explicit QuantizeLinear(const NodeInfo& info)
      : axis_(info.attr("axis", 1)), block_(info.attr("block_size", 0)), saturate_(info.attr("saturate", 1) != 0) {
    DataType type = info.out_type(0);
    if (!quant_range(type, range_) && !is_small_float(type)) info.refuse(Code::not_implemented, "output type ", type);
    precision_ = type_attribute(info, "precision", info.in_type(1));
  }
  void shapes(ShapeContext& c) const override {
    check(c);
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const ScaleMap map(c.node(), x.shape, c.in(1).shape, axis_, block_);
    const int64_t size = x.size(), blocks = (size + kConvertBlock - 1) / kConvertBlock;
    c.pool().parallel_for(blocks, kConvertBlock * 2.0, [&](int64_t first, int64_t last) {
      float values[kConvertBlock], scales[kConvertBlock];
      int32_t zeros[kConvertBlock];
      const float* from = values;
      for (int64_t block = first; block < last; ++block) {
        const int64_t begin = block * kConvertBlock, n = std::min(kConvertBlock, size - begin);
        if (x.type == DataType::float32)
          from = x.as<float>() + begin;
        else
          load_floats(x.type, x.data, begin, n, values);
        map.walk(begin, begin + n, [&](int64_t at, int64_t scale, int64_t step, int64_t count) {
          load_run(c, scale, step, count, scales + (at - begin), zeros + (at - begin));
        });
        for (int64_t i = 0; i < n; ++i) scales[i] = from[i] / scales[i];
        if (is_half(precision_)) round_half(scales, n);
        write(scales, zeros, n, y, begin);
      }
    });
  }

 private:
  void check(const ShapeContext& c) const {
    ScaleMap(c.node(), c.in(0), c.in(1), axis_, block_);
    if (c.has(2) && c.in(2).size() != c.in(1).size())
      c.refuse("zero point of shape ", c.in(2), " and scale of shape ", c.in(1), " differ");
  }

  void load_run(const RunContext& c, int64_t scale, int64_t step, int64_t count, float* scales, int32_t* zeros) const {
    const int64_t loaded = step ? count : 1;
    const Tensor& s = c.in(1);
    const size_t bytes = type_bits(s.type) / 8;
    convert_elements(s.type, static_cast<const char*>(s.data) + static_cast<size_t>(scale) * bytes, DataType::float32,
                     scales, 0, loaded);
    if (c.has(2) && range_.high > 0)
      load_quantized(c.in(2).type, c.in(2).data, scale, loaded, zeros);
    else
      std::fill_n(zeros, loaded, 0);
    if (step) return;
    std::fill_n(scales + 1, count - 1, scales[0]);
    std::fill_n(zeros + 1, count - 1, zeros[0]);
  }

  void round_half(float* values, int64_t n) const {
    uint16_t bits[kHalfBlock];
    narrow_half(precision_, values, bits, n);
    widen_half(precision_, bits, values, n);
  }

  void write(const float* values, const int32_t* zeros, int64_t n, Tensor& y, int64_t begin) const {
    if (range_.high == 0) {
      uint8_t codes[kConvertBlock];
      for (int64_t i = 0; i < n; ++i) codes[i] = encode_small_float(y.type, values[i], saturate_);
      if (is_subbyte(y.type)) return pack_elements(y.type, codes, y.data, begin, n);
      std::copy_n(codes, n, y.as<uint8_t>() + begin);
      return;
    }
    int32_t results[kConvertBlock];
    for (int64_t i = 0; i < n; ++i) results[i] = quantize_one(values[i], zeros[i], range_);
    convert_elements(DataType::int32, results, y.type,
                     static_cast<char*>(y.data) + static_cast<size_t>(begin) * type_bits(y.type) / 8, 0, n);
  }

  int64_t axis_, block_;
  bool saturate_;
  QuantRange range_;
  DataType precision_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(quantize_linear) {
  r.add({.name = "QuantizeLinear", .since = 10, .make = make_kernel<QuantizeLinear>});
  r.add({.name = "QuantizeLinear", .domain = "com.microsoft", .make = make_kernel<QuantizeLinear>});
}
